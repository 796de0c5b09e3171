{#- Tables and views in the target's catalog, where people look for them by name. -#}

{#- A table in a folder. -#}
{%- macro folder_published(target, model, storage) -%}
create table if not exists {{ catalog_name(target, model) }} using {{ storage }} location {{ text(target.at(model)) }}
{%- endmacro -%}

{%- macro view_published(target, model, sql, clauses={}) -%}
create or replace view {{ catalog_name(target, model) }}{{ clauses_given(clauses) }} as {{ sql }}
{%- endmacro -%}

{%- macro view_dropped(view) -%} drop view if exists {{ view }} {%- endmacro -%}

{#- Views name what they read as models do, without a schema. -#}
{%- macro schema_in_use(target) -%}
use {{ name(target.catalog.name) }}.{{ name(target.catalog.schema) }}
{%- endmacro -%}

{#- A query with those of ephemeral models that it reads, parents first. What it begins with may be a `with` of its own. -#}
{%- macro with_queries(queries, sql) -%}
with
{%- for model, query in queries.items() %}
{{ name(model) }} as (
{{ query }}
){{ ',' if not loop.last }}
{%- endfor %}
select * from (
{{ sql }}
)
{%- endmacro -%}
