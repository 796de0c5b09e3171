{#- What keeps tables fit over years, by the engine's own procedures. `until` is an instant: states of a table before it need not stay readable. -#}

{%- macro delta_compacted(target, table, until) -%} optimize {{ delta_table(target, table) }} {%- endmacro -%}

{%- macro delta_vacuumed(target, table, until) -%} vacuum {{ delta_table(target, table) }} retain {{ until.hours }} hours {%- endmacro -%}

{%- macro iceberg_compacted(target, table, until) -%} call {{ iceberg_procedure(target, table, 'rewrite_data_files') }}) {%- endmacro -%}

{%- macro iceberg_manifests_compacted(target, table, until) -%} call {{ iceberg_procedure(target, table, 'rewrite_manifests') }}) {%- endmacro -%}

{%- macro iceberg_snapshots_expired(target, table, until) -%}
call {{ iceberg_procedure(target, table, 'expire_snapshots') }}, older_than => timestamp {{ text(until.at) }}, retain_last => 1)
{%- endmacro -%}

{%- macro iceberg_orphans_removed(target, table, until) -%}
call {{ iceberg_procedure(target, table, 'remove_orphan_files') }}, older_than => timestamp {{ text(until.at_a_day_ago) }})
{%- endmacro -%}

{%- macro iceberg_procedure(target, table, procedure) -%}
{{ name(target.catalog.name) }}.system.{{ procedure }}(table => {{ text(name(target.catalog.schema) ~ '.' ~ name(table)) }}
{%- endmacro -%}

{%- macro old_rows_removed(table, before) -%} delete from {{ table }} where landed_on < date {{ text(before) }} {%- endmacro -%}
