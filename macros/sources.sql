{#- Sources: tables that the runner does not make, and how old the newest row of a source is. -#}

{%- macro external_table(table) -%}
{{ folder_table(table.storage, table.folder) if table.folder else (table.place | map('name') | join('.')) }}
{%- endmacro -%}

{#- The instant of the newest row, and its age in seconds. -#}
{%- macro age_of(rows, loaded_at, condition) -%}
select newest, unix_seconds(current_timestamp()) - unix_seconds(newest) as age
from (
  select cast(max({{ bracketed(loaded_at) }}) as timestamp) as newest from {{ rows }}
  {%- if condition %}
  where {{ bracketed(condition) }}
  {%- endif %}
)
{%- endmacro -%}

{#- When a message of a changelog came from its vendor, by the vendor's clock. -#}
{%- macro sent_at() -%} coalesce(produced_at, event_time, origin.timestamp) {%- endmacro -%}
