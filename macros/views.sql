{#- Views over the changelog tables of all sources. Columns are listed: a union goes by position. -#}

{%- macro all_sources(sources, columns) -%}
{%- for source in sources %}
  select {{ columns | map('name') | join(', ') | replace(name('source'), text(source.name) ~ ' as ' ~ name('source')) }} from {{ name(source.model) }}
  {%- if not loop.last %}
  union all
  {%- endif %}
{%- else %}
  select {% for column in columns %}cast(null as {{ contract[column] }}) as {{ name(column) }}{{ ', ' if not loop.last }}{% endfor %} where false
{%- endfor %}
{%- endmacro -%}

{%- macro view_of_kind(sources, kind) -%}
select * from (
{{- all_sources(sources, contract) }}
)
where kind = {{ text(kind) }}
{%- endmacro -%}

{#- How fresh each source is, and how many messages of each kind it has brought. -#}
{%- macro freshness(sources, by) -%}
select
  {{ by | map('name') | join(', ') }},
  max(event_time) filter (where kind in ('row', 'ddl')) as last_event,
  {%- if 'table_name' not in by %}
  max(coalesce(event_time, produced_at)) filter (where kind = 'control' and op in ('heartbeat', 'watermark')) as last_heartbeat,
  {%- endif %}
  max(coalesce(produced_at, event_time, origin.timestamp)) as last_message,
  max(loaded_at) as last_loaded,
  count_if(seq.row = 0) as messages,
  count_if(kind = 'row') as rows,
  {%- if 'table_name' not in by %}
  count_if(kind = 'control') as controls,
  {%- endif %}
  count_if(kind = 'ddl') as ddls,
  count_if(kind = 'dead_letter') as dead_letters
from (
{{- all_sources(sources, ['kind', 'source', 'op', 'tenant', 'db_name', 'schema_name', 'table_name', 'event_time', 'produced_at', 'seq', 'origin', 'loaded_at']) }}
)
{%- if 'table_name' in by %}
where kind <> 'control'
{%- endif %}
group by {{ by | map('name') | join(', ') }}
{%- endmacro -%}

{%- macro view_changelog(sources) -%} {{ view_of_kind(sources, 'row') }} {%- endmacro -%}
{%- macro view_ddl_events(sources) -%} {{ view_of_kind(sources, 'ddl') }} {%- endmacro -%}
{%- macro view_control_events(sources) -%} {{ view_of_kind(sources, 'control') }} {%- endmacro -%}
{%- macro view_dead_letters(sources) -%} {{ view_of_kind(sources, 'dead_letter') }} {%- endmacro -%}
{%- macro view_freshness(sources) -%} {{ freshness(sources, ['source']) }} {%- endmacro -%}
{%- macro view_freshness_by_table(sources) -%} {{ freshness(sources, ['source', 'tenant', 'db_name', 'schema_name', 'table_name']) }} {%- endmacro -%}
