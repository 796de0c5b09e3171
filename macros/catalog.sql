{#- Tables and views where people look for them: in the target's catalog. A table that lies in a folder becomes known there, or a view of it. -#}

{%- macro delta_published(target, table) -%}
create table if not exists {{ catalog_name(target, table) }} using delta location {{ text(target.at(table)) }}
{%- endmacro -%}

{%- macro view_published(target, table, sql) -%}
create or replace view {{ catalog_name(target, table) }} as {{ sql }}
{%- endmacro -%}

{#- What views read, they name as models do. -#}
{%- macro schema_in_use(target) -%}
use {{ name(target.catalog.name) }}.{{ name(target.catalog.schema) }}
{%- endmacro -%}
