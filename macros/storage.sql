{#- Tables: how they are named, created and filled, in every storage. `table` is the name that `folder_table` or `catalog_name` prints. -#}

{%- macro folder_table(storage, path) -%} {{ storage }}.{{ name(path) }} {%- endmacro -%}

{#- The name of a model's table or view in the target's catalog. -#}
{%- macro catalog_name(target, model) -%}
{{ name(target.catalog.name) }}.{{ name(target.catalog.schema) }}.{{ name(model) }}
{%- endmacro -%}

{%- macro schema_created(target) -%}
create schema if not exists {{ name(target.catalog.name) }}.{{ name(target.catalog.schema) }}
{%- endmacro -%}

{%- macro tables_listed(target) -%}
show tables in {{ name(target.catalog.name) }}.{{ name(target.catalog.schema) }}
{%- endmacro -%}

{%- macro temporary_view(view, sql) -%}
create or replace temporary view {{ name(view) }} as {{ sql }}
{%- endmacro -%}

{%- macro all_rows(table) -%} select * from {{ table }} {%- endmacro -%}

{#- The rows of a table of the changelog, its columns in the contract's order. -#}
{%- macro changelog_rows(table) -%}
select {{ contract | map('name') | join(', ') }} from {{ table }}
{%- endmacro -%}

{#- The rows of a changelog without those of messages that have landed once more since: dead letters, or all rows of a message. -#}
{%- macro without_landed_again(changelog, again) -%}
{%- set own -%}
{%- if again.replacing -%}
(
  select own.* from {{ name(changelog) }} as own
  left anti join ({{ places_in(name(changelog), again.replacing, place_of_whole()) }}) as again on {{ is_older(place_of_whole('own.')) }}
)
{%- else %}{{ name(changelog) }}{% endif -%}
{%- endset -%}
{%- if again.letters -%}
select * from {{ own }} where kind <> 'dead_letter'
union all
select own.* from {{ own }} as own
left anti join ({{ places_in(name(changelog), again.letters, place_of_message()) }}) as again on {{ is_older(place_of_message('own.')) }}
where own.kind = 'dead_letter'
{%- else -%}
select * from {{ own }}
{%- endif -%}
{%- endmacro -%}
{%- macro places_in(changelog, batches, place) -%}
select place, max(batch) as batch from (select {{ place }} as place, batch from {{ changelog }} where batch in ({{ batches | sort | join(', ') }})) group by place
{%- endmacro -%}
{%- macro is_older(place) -%} again.batch > own.batch and again.place = {{ place }} {%- endmacro -%}

{#- Removes the rows of messages that have landed once more since: all rows of a message, or its dead letters. -#}
{%- macro replaced_removed(table, batches) -%} {{ older_removed(table, places_in(table, batches, place_of_whole()), is_older(place_of_whole('own.'))) }} {%- endmacro -%}
{%- macro letters_removed(table, batches) -%}
{{ older_removed(table, places_in(table, batches, place_of_message()), "own.kind = 'dead_letter' and " ~ is_older(place_of_message('own.'))) }}
{%- endmacro -%}
{%- macro older_removed(table, again, condition) -%}
merge into {{ table }} as own using ({{ again }}) as again on {{ condition }} when matched then delete
{%- endmacro -%}

{#- Where a message lies, with the number of its part or without it: no other message of its source has the same. -#}
{%- macro place_of_message(of='', row='seq.row') -%}
to_json(struct({{ of }}origin.topic, {{ of }}origin.partition, {{ of }}origin.file, {{ of }}seq.arrival, {{ of if row == 'seq.row' }}{{ row }} as row))
{%- endmacro -%}
{%- macro place_of_whole(of='', arrival='seq.arrival') -%}
to_json(struct({{ of }}origin.topic, {{ of }}origin.partition, {{ of }}origin.file, {{ of }}{{ arrival }}))
{%- endmacro -%}

{%- macro no_rows(columns) -%}
select {% for column, kind in columns.items() %}cast(null as {{ kind }}) as {{ name(column) }}{{ ', ' if not loop.last }}{% endfor %} where false
{%- endmacro -%}

{%- macro contract_columns() -%}
{% for column, kind in contract.items() %}{{ name(column) }} {{ kind }}{{ ', ' if not loop.last }}{% endfor %}
{%- endmacro -%}

{%- macro changelog_created(table, storage, properties) -%}
create table if not exists {{ table }} ({{ contract_columns() }}) using {{ storage }} partitioned by (kind, landed_on)
tblproperties ({{ properties_given(properties) }})
{%- endmacro -%}

{%- macro properties_given(properties) -%} {{ properties.items() | each('property_given') | join(', ') }} {%- endmacro -%}
{%- macro property_given(property) -%} {{ text(property[0]) }} = {{ text(property[1]) }} {%- endmacro -%}

{#- New rows, each with a 1 in `times of this key`; raises an error that names the first key that two of them have. -#}
{%- macro once_each(table, rows, key) -%}
(
  select * from (
    select *, count(*) over (partition by {{ key | map('name') | join(', ') }}) as `times of this key` from {{ name(rows) }}
  )
  where if(`times of this key` > 1, raise_error(concat({{ text('two new rows of "' ~ table ~ '" have one key: ') }}, to_json(struct({{ key | map('name') | join(', ') }}), map('ignoreNullFields', 'false')))), true)
)
{%- endmacro -%}

{%- macro rows_once_each(table, rows, key) -%} select * except (`times of this key`) from {{ once_each(table, rows, key) }} {%- endmacro -%}

{#- Puts new rows into a table with these columns: they replace the rows with the same key. -#}
{%- macro merged(into, new, columns, sent, key) -%}
merge into {{ into }} as own using {{ new }} as new
on {{ same_key(key) }}

when matched then update set {{ sent | each('column_set') | join(', ') }}

when not matched then insert ({{ columns | map('name') | join(', ') }}) values ({{ as_sent(columns, sent, 'new') }})
{%- endmacro -%}

{%- macro added(into, new, columns, sent) -%}
insert into {{ into }} ({{ columns | map('name') | join(', ') }}) select {{ as_sent(columns, sent, 'new') }} from {{ new }} as new
{%- endmacro -%}

{%- macro as_sent(columns, sent, of) -%}
{% for column in columns %}{{ of ~ '.' ~ name(column) if column in sent else 'null' }}{{ ', ' if not loop.last }}{% endfor %}
{%- endmacro -%}

{#- All rows of a table after an increment, for a storage that writes tables whole: the same rows that `merged` or `added` would give, or those of the
    partitions that the new rows are in anew. `kept` says of each column where the rows that stay have it. -#}
{%- macro rewritten_with(own, new, kept, columns, sent, key) -%}
{{ rewritten_rows(own, new, kept, columns, sent, '\nleft join ' ~ new ~ ' as new on ' ~ same_key(key)) }}
where not exists (select 1 from {{ own }} as own where {{ same_key(key) }})
{%- endmacro -%}
{%- macro rewritten_over(own, new, kept, columns, sent, partitions) -%}
{{ rewritten_rows(own, new, kept, columns, sent, '\nwhere not exists (select 1 from ' ~ new ~ ' as new where ' ~ same_key(partitions) ~ ')') }}
{%- endmacro -%}
{%- macro rewritten_rows(own, new, kept, columns, sent, which='') -%}
select {% for column, place in kept.items() %}{{ macro('kept_' ~ place)(name(column)) }} as {{ name(column) }}{{ ', ' if not loop.last }}{% endfor %} from {{ own }} as own
{{- which }}
union all
select {{ as_sent(columns, sent, 'new') }} from {{ new }} as new
{%- endmacro -%}
{%- macro kept_nowhere(column) -%} null {%- endmacro -%}
{%- macro kept_own(column) -%} own.{{ column }} {%- endmacro -%}
{%- macro kept_new(column) -%} new.{{ column }} {%- endmacro -%}
{%- macro kept_newest(column) -%} if(new.`times of this key` is null, own.{{ column }}, new.{{ column }}) {%- endmacro -%}

{%- macro same_key(key) -%} {{ key | each('is_same') | join(' and ') }} {%- endmacro -%}
{%- macro is_same(column) -%} own.{{ name(column) }} <=> new.{{ name(column) }} {%- endmacro -%}

{#- At the end, or first if `after` is the name of no column. -#}
{%- macro column_added(table, column, kind, after=none) -%} alter table {{ table }} add columns ({{ name(column) }} {{ kind }}{{ '' if after is none else ' after ' ~ name(after) if after else ' first' }}) {%- endmacro -%}
{%- macro column_widened(table, column, kind) -%} alter table {{ table }} alter column {{ name(column) }} type {{ kind }} {%- endmacro -%}
{%- macro column_dropped(table, column) -%} alter table {{ table }} drop columns ({{ name(column) }}) {%- endmacro -%}
{%- macro table_dropped(table) -%} drop table if exists {{ table }} {%- endmacro -%}
{#- The new name is one in the schema of the table. -#}
{%- macro table_renamed(table, new) -%} alter table {{ table }} rename to {{ name(new) }} {%- endmacro -%}
{%- macro properties_shown(table) -%} show tblproperties {{ table }} {%- endmacro -%}
{%- macro newest_batch(table) -%} select max(batch) as newest from {{ table }} {%- endmacro -%}
{%- macro delta_history(table) -%} describe history {{ table }} {%- endmacro -%}
{%- macro iceberg_snapshots(table) -%} select snapshot_id, parent_id, operation, summary from {{ table }}.snapshots {%- endmacro -%}
{%- macro properties_set(table, properties) -%} alter table {{ table }} set tblproperties ({{ properties_given(properties) }}) {%- endmacro -%}
