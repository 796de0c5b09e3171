{#- Views over the changelog tables of all sources. Columns are listed: a union goes by position. -#}

{%- macro all_sources(sources, columns) %}
  {{ sources | each('rows_of_source', columns) | join('\n  union all\n  ') | default(rows_of_none(columns), true) }}
{%- endmacro -%}
{%- macro rows_of_source(source, columns) -%} {{ rows_under_name(source.model, source.name, columns) }} {%- endmacro -%}
{#- The rows of a changelog with the name that its source has now. -#}
{%- macro rows_under_name(changelog, source, columns=contract) -%}
select {% for column in columns %}{{ text(source) ~ ' as ' if column == 'source' }}{{ name(column) }}{{ ', ' if not loop.last }}{% endfor %} from {{ name(changelog) }}
{%- endmacro -%}
{%- macro rows_of_none(columns) -%} select {% for column in columns %}cast(null as {{ contract[column] }}) as {{ name(column) }}{{ ', ' if not loop.last }}{% endfor %} where false {%- endmacro -%}

{%- macro view_of_kind(sources, kind) -%}
select * from (
{{- all_sources(sources, contract) }}
)
where kind = {{ text(kind) }}
{%- endmacro -%}

{#- The rows of a model that landed after the batch `since` of their source, and not after the batch `until`. -#}
{%- macro rows_between(model, sources) -%}
select * from {{ name(model) }}
where {% for source in sources %}(source = {{ text(source.name) }} and batch > {{ source.since }} and batch <= {{ source.until }}){{ ' or ' if not loop.last }}{% else %}false{% endfor %}
{%- endmacro -%}

{#- How fresh each source is, and how many messages of each kind came from it: with controls, which are of no table, or of some rows. -#}
{%- macro freshness(sources, by, heartbeats='', controls='', which='') -%}
select
  {{ by | map('name') | join(', ') }},
  max(event_time) filter (where kind in ('row', 'ddl')) as last_event,
  {{- heartbeats }}
  max({{ sent_at() }}) as last_message,
  max(loaded_at) as last_loaded,
  count_if(seq.row = 0) as messages,
  count_if(kind = 'row') as rows,
  {{- controls }}
  count_if(kind = 'ddl') as ddls,
  count_if(kind = 'dead_letter') as dead_letters,
  count_if(kind = 'dead_letter' and {{ is_waived_anywhere(sources) }}) as waived
from (
{{- all_sources(sources, ['kind', 'source', 'op', 'tenant', 'db_name', 'schema_name', 'table_name', 'event_time', 'produced_at', 'seq', 'origin', 'loaded_at'] + (['reason', 'detail'] if sources | selectattr('dead_letters.waived') | list else [])) }}
)
{{- which }}
group by {{ by | map('name') | join(', ') }}
{%- endmacro -%}
{%- macro view_freshness(sources) -%}
{{ freshness(sources, ['source'],
  "\n  max(coalesce(event_time, produced_at)) filter (where kind = 'control' and op in ('heartbeat', 'watermark')) as last_heartbeat,",
  "\n  count_if(kind = 'control') as controls,") }}
{%- endmacro -%}
{%- macro view_freshness_by_table(sources) -%}
{{ freshness(sources, ['source', 'tenant', 'db_name', 'schema_name', 'table_name'], which="\nwhere kind <> 'control'") }}
{%- endmacro -%}

{#- Row changes, with the two halves of an update as one row. Of a half that came twice the earlier one counts, so that messages that are sent again
    add no rows; a half whose other half is missing stays as it is. Only sources with halves pay for the join. -#}
{%- macro view_changelog(sources) -%}
{%- set halved = sources | selectattr('format.has_halves') | list -%}
{{ view_of_kind(sources, 'row') }}
{%- if halved %}
  and pair_id is null
union all
select {{ contract | map('name') | join(', ') }} from (
  select
    own.*
      except (before, before_image, after_image, old_key, changed, batch),
    {{ joined('other.before', 'own.before') }} as before,
    {{ joined(how_complete('other.before', 'own.after', 'own.types', 'map_keys(own.key)'), 'own.before_image') }} as before_image,
    {{ joined(how_complete('own.after', 'other.before', 'own.types', 'map_keys(own.key)'), 'own.after_image') }} as after_image,
    {{ joined('if(not map_values(other.key) <=> map_values(own.key), other.key, null)', 'own.old_key') }} as old_key,
    {{ joined(changed_between('other.before', 'own.after', 'own.types'), 'own.changed') }} as changed,
    {{ joined('greatest(own.batch, other.batch)', 'own.batch') }} as batch
  from (
    select
      coalesce(after_half, before_half) as own,
      if(after_half is null, null, before_half) as other
    from (
      select
        min_by(half, half.seq) filter (where half.after_image = 'none') as before_half,
        min_by(half, half.seq) filter (where half.after_image <> 'none') as after_half
      from (
        select struct({{ contract | map('name') | join(', ') }}) as half from ({{ all_sources(halved, contract) | indent(8) }}
        )
        where kind = 'row' and pair_id is not null
      )
      group by half.source, half.tenant, half.db_name, half.schema_name, half.table_name, half.pair_id, half.seq.row
    )
  )
)
{%- endif %}
{%- endmacro -%}

{#- The value of a joined update, or that of a half that is alone. -#}
{%- macro joined(both, alone) -%} if(other is null, {{ alone }}, {{ both }}) {%- endmacro -%}

{#- For each source the numbers of messages and rows by kind, operation and reason, at the beginnings of at most some sixty spans of time. -#}
{%- macro view_landed_over_time(sources) -%}
with minutes as (
  select
    source, kind, op, reason,
    {#- Few dead letters tell when they happened, and those beside others would stand months apart. #}
    unix_seconds(coalesce(if(kind = 'dead_letter', null, coalesce(produced_at, event_time)), origin.timestamp, loaded_at)) div 60 as minute,
    count_if(seq.row = 0) as messages,
    count(*) as rows
  from (
{{- all_sources(sources, ['kind', 'source', 'op', 'event_time', 'produced_at', 'seq', 'origin', 'reason', 'loaded_at']) }}
  )
  group by all
),
measured as (
  select
    *,
    (max(minute) over of_source - min(minute) over of_source) / 60 as least
  from minutes
  window of_source as (partition by source, kind = 'dead_letter')
),
spanned as (
  select
    *,
    array_min(filter(array(1, 5, 15, 60, 360, 1440, 10080, 43200, 525600), width -> width >= least or width = 525600)) as width
  from measured
)
select source, kind, op, reason, minute div width * width * 60 as moment, sum(messages) as messages, sum(rows) as rows
from spanned
group by all
order by all
{%- endmacro -%}

{%- macro view_ddl_events(sources) -%}
select *, {{ tables_named_in('statement') }} as tables from (
{{ view_of_kind(sources, 'ddl') }}
)
{%- endmacro -%}
{%- macro view_control_events(sources) -%} {{ view_of_kind(sources, 'control') }} {%- endmacro -%}
{#- A waived dead letter is one that its source expects. Those whose messages have landed since are in no view. -#}
{%- macro view_dead_letters(sources) -%}
select *, if({{ is_waived_anywhere(sources) }}, 'waived', 'open') as state from (
{{ view_of_kind(sources, 'dead_letter') }}
)
{%- endmacro -%}
