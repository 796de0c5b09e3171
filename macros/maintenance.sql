{#- What keeps tables small and fast over years, by each storage's own procedures. States of a table before `cutoff` need not stay readable. -#}

{%- macro delta_compacted(target, model, cutoff) -%} optimize {{ folder_table('delta', target.at(model)) }} {%- endmacro -%}

{%- macro delta_vacuumed(target, model, cutoff) -%} vacuum {{ folder_table('delta', target.at(model)) }} retain {{ cutoff.hours }} hours {%- endmacro -%}

{%- macro iceberg_compacted(target, model, cutoff) -%} call {{ iceberg_procedure(target, model, 'rewrite_data_files') }}) {%- endmacro -%}

{%- macro iceberg_manifests_compacted(target, model, cutoff) -%} call {{ iceberg_procedure(target, model, 'rewrite_manifests') }}) {%- endmacro -%}

{%- macro iceberg_snapshots_expired(target, model, cutoff) -%}
call {{ iceberg_procedure(target, model, 'expire_snapshots') }}, older_than => timestamp {{ text(cutoff.at) }}, retain_last => 1)
{%- endmacro -%}

{%- macro iceberg_orphans_removed(target, model, cutoff) -%}
call {{ iceberg_procedure(target, model, 'remove_orphan_files') }}, older_than => timestamp {{ text(cutoff.at_least_a_day_ago) }})
{%- endmacro -%}

{%- macro iceberg_procedure(target, model, procedure) -%}
{{ name(target.catalog.name) }}.system.{{ procedure }}(table => {{ text(name(target.catalog.schema) ~ '.' ~ name(model)) }}
{%- endmacro -%}

{%- macro old_rows_removed(table, before) -%} delete from {{ table }} where landed_on < date {{ text(before) }} {%- endmacro -%}

{%- macro old_texts_removed(table, before) -%}
update {{ table }} set raw = null where raw is not null and kind <> 'dead_letter' and landed_on < date {{ text(before) }}
{%- endmacro -%}

{%- macro newest_batch_before(model, day) -%} select max(batch) as batch from {{ name(model) }} where landed_on < date {{ text(day) }} {%- endmacro -%}
