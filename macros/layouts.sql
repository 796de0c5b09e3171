{#- How tables of models are kept: partitions, clusters, properties, comments. -#}

{#- A table of some rows, in place of the one that was there. -#}
{%- macro table_replaced(table, storage, rows, clauses) -%}
create or replace table {{ table }} using {{ storage }}{{ clauses_given(clauses) }}
as {{ rows }}
{%- endmacro -%}

{%- macro clauses_given(clauses) -%} {% for clause, value in clauses.items() %} {{ macro('clause_' ~ clause)(value) }}{% endfor %} {%- endmacro -%}
{%- macro clause_partition_by(parts) -%} partitioned by ({{ parts_given(parts) }}) {%- endmacro -%}
{%- macro clause_cluster_by(parts) -%} cluster by ({{ parts_given(parts) }}) {%- endmacro -%}
{%- macro clause_columns(comments) -%} ({{ columns_with_comments(comments) }}) {%- endmacro -%}
{%- macro clause_comment(comment) -%} comment {{ text(comment) }} {%- endmacro -%}
{%- macro clause_properties(properties) -%} tblproperties ({{ properties_given(properties) }}) {%- endmacro -%}

{%- macro parts_given(parts, functions='') -%}
{% for part in parts %}{{ part_given(part, functions) if part.transform else name(part.column) }}{{ ', ' if not loop.last }}{% endfor %}
{%- endmacro -%}

{%- macro part_given(part, functions) -%}
{{ functions }}{{ part.transform }}({% if part.argument is not none %}{{ part.argument }}, {% endif %}{{ name(part.column) }})
{%- endmacro -%}

{#- The rows of a view in the order of what keeps them together; transforms are functions of the catalog. -#}
{%- macro ordered_rows(target, view, parts) -%}
select * from {{ name(view) }} order by {{ parts_given(parts, name(target.catalog.name) ~ '.system.') }}
{%- endmacro -%}

{%- macro table_ordered(table, parts) -%} alter table {{ table }} write ordered by {{ parts_given(parts) }} {%- endmacro -%}

{#- The rows of a view, its columns with comments. -#}
{%- macro commented_view(view, rows, comments) -%}
create or replace temporary view {{ name(view) }} ({{ columns_with_comments(comments) }})
as select {% for column in comments %}{{ name(column) }}{{ ', ' if not loop.last }}{% endfor %} from {{ name(rows) }}
{%- endmacro -%}

{%- macro columns_with_comments(comments) -%}
{% for column, comment in comments.items() %}{{ name(column) }}{% if comment %} comment {{ text(comment) }}{% endif %}{{ ', ' if not loop.last }}{% endfor %}
{%- endmacro -%}

{%- macro table_described(table) -%} describe table extended {{ table }} {%- endmacro -%}

{%- macro table_commented(table, comment) -%} comment on table {{ table }} is {{ text(comment) }} {%- endmacro -%}

{%- macro columns_commented(table, comments) -%}
alter table {{ table }} alter column {% for column, comment in comments.items() %}{{ name(column) }} comment {{ text(comment) }}{{ ', ' if not loop.last }}{% endfor %}
{%- endmacro -%}

{#- New rows with the columns of their table, in its order. -#}
{%- macro typed_rows(new, types, sent) -%}
select {% for column, kind in types.items() %}cast({{ 'new.' ~ name(column) if column in sent else 'null' }} as {{ kind }}) as {{ name(column) }}{{ ', ' if not loop.last }}{% endfor %} from {{ new }} as new
{%- endmacro -%}

{#- The rows of a folder. Of columns that folders in it are for, Spark guesses types. -#}
{%- macro shaped_rows(table, columns) -%}
select {% for column, kind in columns.items() %}cast({{ name(column) }} as {{ kind }}) as {{ name(column) }}{{ ', ' if not loop.last }}{% endfor %} from {{ table }}
{%- endmacro -%}

{#- The rows of a view; raises an error that names the columns that are null and must not be. -#}
{%- macro promised_rows(model, view, columns) -%}
select * from {{ name(view) }}
where if(
  {% for column in columns %}{{ name(column) }} is null{{ ' or ' if not loop.last }}{% endfor %},
  raise_error(concat({{ text('the contract of "' ~ model ~ '" is broken: null in ') }}, concat_ws(', ',
    {% for column in columns %}if({{ name(column) }} is null, {{ text('"' ~ column ~ '"') }}, null){{ ', ' if not loop.last }}{% endfor %}))),
  true)
{%- endmacro -%}
