{#- Tables, as each storage wants them: how a table is named, made, filled and looked after. `target` says where, `table` is a model's name. -#}

{%- macro parquet_table(target, table) -%} parquet.{{ name(target.at(table)) }} {%- endmacro -%}
{%- macro delta_table(target, table) -%} delta.{{ name(target.at(table)) }} {%- endmacro -%}
{%- macro iceberg_table(target, table) -%} {{ catalog_name(target, table) }} {%- endmacro -%}

{#- What a table or view is called where people look for it. -#}
{%- macro catalog_name(target, table) -%}
{{ name(target.catalog.name) }}.{{ name(target.catalog.schema) }}.{{ name(table) }}
{%- endmacro -%}

{%- macro schema_made(target) -%}
create schema if not exists {{ name(target.catalog.name) }}.{{ name(target.catalog.schema) }}
{%- endmacro -%}

{%- macro temporary_view(view, sql) -%}
create or replace temporary view {{ name(view) }} as {{ sql }}
{%- endmacro -%}

{%- macro all_rows(table) -%} select * from {{ table }} {%- endmacro -%}

{#- The rows of a table of the changelog, its columns in the contract's order. -#}
{%- macro changelog_rows(table) -%}
select {{ contract | map('name') | join(', ') }} from {{ table }}
{%- endmacro -%}

{%- macro no_rows() -%}
select {% for column, kind in contract.items() %}cast(null as {{ kind }}) as {{ name(column) }}{{ ', ' if not loop.last }}{% endfor %} where false
{%- endmacro -%}

{%- macro contract_columns() -%}
{% for column, kind in contract.items() %}{{ name(column) }} {{ kind }}{{ ', ' if not loop.last }}{% endfor %}
{%- endmacro -%}

{#- Statistics of maps and structs cost more than writing does, and no query asks for them. -#}
{%- macro delta_changelog_made(target, table) -%}
create table if not exists {{ delta_table(target, table) }} ({{ contract_columns() }}) using delta partitioned by (kind, landed_on)
tblproperties ('delta.dataSkippingStatsColumns' = 'op,db_name,schema_name,table_name,key_text,event_time,loaded_at')
{%- endmacro -%}

{#- Tasks write what they have read: rows are not sorted by partition before. -#}
{%- macro iceberg_changelog_made(target, table) -%}
create table if not exists {{ iceberg_table(target, table) }} ({{ contract_columns() }}) using iceberg partitioned by (kind, landed_on)
tblproperties ('write.distribution-mode' = 'none', 'write.spark.fanout.enabled' = 'true',
  'write.metadata.delete-after-commit.enabled' = 'true', 'write.metadata.previous-versions-max' = '10')
{%- endmacro -%}

{#- New rows, each with a 1 for the times that its key comes; raises an error that names the first key that comes twice. -#}
{%- macro once_each(table, rows, key) -%}
(
  select * from (
    select *, count(*) over (partition by {{ key | map('name') | join(', ') }}) as `times of this key` from {{ name(rows) }}
  )
  where if(`times of this key` > 1, raise_error(concat({{ text('two new rows of "' ~ table ~ '" have one key: ') }}, to_json(struct({{ key | map('name') | join(', ') }}), map('ignoreNullFields', 'false')))), true)
)
{%- endmacro -%}

{#- New rows into a table that has these columns: those with a key that is there replace what is there. -#}
{%- macro merged(into, new, columns, sent, key) -%}
merge into {{ into }} as own using {{ new }} as new
on {{ same_key(key) }}

when matched then update set {% for column in sent %}own.{{ name(column) }} = new.{{ name(column) }}{{ ', ' if not loop.last }}{% endfor %}

when not matched then insert ({{ columns | map('name') | join(', ') }}) values ({{ as_sent(columns, sent, 'new') }})
{%- endmacro -%}

{%- macro added(into, new, columns, sent) -%}
insert into {{ into }} ({{ columns | map('name') | join(', ') }}) select {{ as_sent(columns, sent, 'new') }} from {{ new }} as new
{%- endmacro -%}

{%- macro as_sent(columns, sent, of) -%}
{% for column in columns %}{{ of ~ '.' ~ name(column) if column in sent else 'null' }}{{ ', ' if not loop.last }}{% endfor %}
{%- endmacro -%}

{#- All rows of a table after an increment, for a storage that writes tables whole: what `merged` and `added` would make of it. -#}
{%- macro rewritten_with(own, new, columns, sent, had, key) -%}
select {% for column in columns %}{{ after_increment(column, sent, had, key) }} as {{ name(column) }}{{ ', ' if not loop.last }}{% endfor %} from {{ own }} as own
{%- if key %}
left join {{ new }} as new on {{ same_key(key) }}
{%- endif %}
union all
select {{ as_sent(columns, sent, 'new') }} from {{ new }} as new
{%- if key %}
where not exists (select 1 from {{ own }} as own where {{ same_key(key) }})
{%- endif %}
{%- endmacro -%}

{%- macro after_increment(column, sent, had, key) -%}
{%- if column not in had -%} {{ 'new.' ~ name(column) if key else 'null' }}
{%- elif column not in sent or not key -%} own.{{ name(column) }}
{%- else -%} if(new.`times of this key` is null, own.{{ name(column) }}, new.{{ name(column) }})
{%- endif -%}
{%- endmacro -%}

{%- macro same_key(key) -%}
{% for column in key %}own.{{ name(column) }} <=> new.{{ name(column) }}{{ ' and ' if not loop.last }}{% endfor %}
{%- endmacro -%}

{%- macro column_added(table, column, kind) -%} alter table {{ table }} add columns ({{ name(column) }} {{ kind }}) {%- endmacro -%}
{%- macro column_dropped(table, column) -%} alter table {{ table }} drop columns ({{ name(column) }}) {%- endmacro -%}
{%- macro table_dropped(table) -%} drop table if exists {{ table }} {%- endmacro -%}
{#- Delta drops columns only of tables whose files know columns by number. -#}
{%- macro delta_columns_numbered(table) -%} alter table {{ table }} set tblproperties ('delta.columnMapping.mode' = 'name') {%- endmacro -%}
