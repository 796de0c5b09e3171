{#- Mirrors compared with the tables of their databases. Values are compared as texts that are equal if the values are (macros/functions/compared.sql).
    A comparison (runner/run/comparison.py) names the macro for each value, and the ranges of keys that are compared. -#}

{#- The rows of a mirror, each beside the row of its table that has the same key: `kind` says how they differ, null if they do not. -#}
{%- macro compared(comparison) -%}
with
-- The rows of the mirror. Of rows with the same key each is the nth.
here as (
  select *, row_number() over (partition by key order by row) as nth from (
    select
      array({{ comparison.key | each('value_here') | in_lines(8) }}) as key,
      array({{ comparison.columns | each('value_here') | in_lines(8) }}) as row,
      {{ macro('row_told_' ~ comparison.told)(comparison.key | each('told_here')) }} as told_key
    from {{ name(comparison.mirror.name) }}
    where {{ comparison.ranges | each('in_range', comparison.key[0].name) | join(' or ') }}
  )
),

-- The rows of the table, read range by range; `is_kept` says whether the mirror is to have them.
there as (
  select * from (
    select *, row_number() over (partition by key order by is_kept desc, row) as nth from (
      {{ comparison.ranges | each('rows_there', comparison) | join('\n      union all\n      ') }}
    )
  )
  {{- macro('copies_' ~ comparison.copies)() }}
)

select
  coalesce(here.key, there.key) as key, here.row as row_here, if(there.is_kept, there.row, null) as row_there,
  here.told_key, there.told, coalesce(here.nth, there.nth) as nth,
  case
    when here.row = there.row then null
    when here.key is null and not there.is_kept then null
    when there.changed_at > {{ instant(comparison.until) }} then 'open'
    when here.key is null then 'missing'
    when there.key is null or not there.is_kept then 'extra'
    else 'different' end as kind
from here full join there on here.key = there.key and here.nth = there.nth
{%- endmacro -%}

{%- macro copies_all() -%} {%- endmacro -%}
{%- macro copies_one() %}
  where nth = 1
{%- endmacro -%}

{%- macro rows_there(range, comparison) -%}
select
        array({{ comparison.key | each('value_there') | in_lines(10) }}) as key,
        array({{ comparison.columns | each('value_there') | in_lines(10) }}) as row,
        {{ macro('row_told_' ~ comparison.told)(comparison.columns | each('told_there')) }} as told,
        {{ macro('kept_there_' ~ ('where' if comparison.mirror.where else 'all'))(comparison) }} as is_kept,
        {{ macro('changed_' ~ ('named' if comparison.changed else 'unknown'))(comparison.changed) }} as changed_at
      from {{ comparison.rows }}
      where {{ in_range(range, comparison.key[0].other) }}
{%- endmacro -%}

{#- Whether a mirror with a condition would have a row of the table: the condition is about the columns of the mirror. -#}
{%- macro kept_there_all(comparison) -%} true {%- endmacro -%}
{%- macro kept_there_where(comparison) -%}
coalesce(exists(
        array(named_struct({{ comparison.columns | each('typed_there') | join(', ') }})),
        _row -> {{ bracketed(comparison.mirror.where) }}), false)
{%- endmacro -%}
{%- macro typed_there(column) -%} {{ text(column.name) }}, try_cast(cast({{ name(column.other) }} as string) as {{ column.type }}) {%- endmacro -%}

{%- macro changed_named(column) -%} try_cast({{ name(column) }} as timestamp) {%- endmacro -%}
{%- macro changed_unknown(column) -%} cast(null as timestamp) {%- endmacro -%}
{%- macro instant(value) -%} cast({{ text(value) if value else 'null' }} as timestamp) {%- endmacro -%}

{%- macro in_range(range, column) -%} {{ macro('in_range_' ~ range.kind)(range, name(column)) }} {%- endmacro -%}
{%- macro in_range_whole(range, column) -%} true {%- endmacro -%}
{%- macro in_range_first(range, column) -%} ({{ column }} < {{ range.end }} or {{ column }} is null) {%- endmacro -%}
{%- macro in_range_middle(range, column) -%} ({{ column }} >= {{ range.start }} and {{ column }} < {{ range.end }}) {%- endmacro -%}
{%- macro in_range_last(range, column) -%} {{ column }} >= {{ range.start }} {%- endmacro -%}

{%- macro value_here(column) -%} {{ macro('compared_' ~ column.here)(name(column.name)) }} {%- endmacro -%}
{%- macro value_there(column) -%} {{ macro('compared_' ~ column.there)(name(column.other)) }} {%- endmacro -%}
{%- macro compared_text(value) -%} cast({{ value }} as string) {%- endmacro -%}
{%- macro compared_number(value) -%} canonical_number(cast({{ value }} as string)) {%- endmacro -%}
{%- macro compared_flag(value) -%} cast(cast({{ value }} as int) as string) {%- endmacro -%}
{%- macro compared_double(value) -%} canonical_double(cast({{ value }} as string)) {%- endmacro -%}
{%- macro compared_float(value) -%} canonical_float(cast({{ value }} as string)) {%- endmacro -%}
{%- macro compared_boolean(value) -%} canonical_boolean(cast({{ value }} as string)) {%- endmacro -%}
{%- macro compared_time(value) -%} canonical_time(cast({{ value }} as string)) {%- endmacro -%}
{%- macro compared_hex(value) -%} hex({{ value }}) {%- endmacro -%}
{%- macro compared_bytes(value) -%} canonical_bytes({{ value }}) {%- endmacro -%}
{%- macro compared_document(value) -%} canonical_document({{ value }}) {%- endmacro -%}

{#- Values as changes tell them: in the canonical text of the types that their columns have in the mirror. -#}
{%- macro row_told_never(values) -%} cast(null as array<string>) {%- endmacro -%}
{%- macro row_told_whole(values) -%} array({{ values | in_lines(10) }}) {%- endmacro -%}
{%- macro told_here(column) -%} {{ macro('told_' ~ column.told_here)(name(column.name)) }} {%- endmacro -%}
{%- macro told_there(column) -%} {{ macro('told_' ~ column.told_there)(name(column.other)) }} {%- endmacro -%}
{%- macro told_text(value) -%} {{ compared_text(value) }} {%- endmacro -%}
{%- macro told_number(value) -%} {{ compared_number(value) }} {%- endmacro -%}
{%- macro told_flag(value) -%} {{ compared_flag(value) }} {%- endmacro -%}
{%- macro told_double(value) -%} {{ compared_double(value) }} {%- endmacro -%}
{%- macro told_float(value) -%} {{ compared_float(value) }} {%- endmacro -%}
{%- macro told_boolean(value) -%} {{ compared_boolean(value) }} {%- endmacro -%}
{%- macro told_clock(value) -%} {{ compared_time(value) }} {%- endmacro -%}
{%- macro told_day(value) -%} regexp_replace({{ compared_time(value) }}, ' 00:00:00$', '') {%- endmacro -%}
{%- macro told_instant(value) -%}
coalesce(concat(replace(cast(try_cast(cast({{ value }} as string) as timestamp) as string), ' ', 'T'), 'Z'), cast({{ value }} as string))
{%- endmacro -%}
{%- macro told_base64(value) -%} base64({{ value }}) {%- endmacro -%}
{%- macro told_bytes(value) -%} coalesce(base64(unhex({{ compared_bytes(value) }})), cast({{ value }} as string)) {%- endmacro -%}

{#- The place among the changes of a table that follows all that have landed, or all that happened up to an instant. -#}
{%- macro place_of_repairs(table, taken_at) -%}
select
  max(seq.generation) as generation, max(seq.arrival) as arrival, unix_micros(max({{ written_at() }})) as sent_at,
  unix_micros(max({{ known_time() }})) as happened_at
from {{ name(table.source.model) }}
where (kind = 'ddl' or kind = 'row' and lower(table_name) = {{ text(table.name[-1] | lower) }})
  and {{ macro('taken_' ~ ('at' if taken_at else 'now'))(taken_at) }}
{%- endmacro -%}
{%- macro taken_now(taken_at) -%} true {%- endmacro -%}
{%- macro taken_at(taken_at) -%} coalesce({{ known_time() }} <= {{ instant(taken_at) }}, false) {%- endmacro -%}

{#- A message for each row that differs, with which the mirror becomes what its table was: the row, or its key if it is gone. The key is that of the mirror,
    which may spell it otherwise; of rows with the same key the first one counts. `place` is what all these messages tell. -#}
{%- macro repairs_of(comparison, views, place) -%}
select
  op,
  to_json(
    named_struct(
      {{ place.texts.items() | each('told_of_all') | in_lines(6) }},
      'arrival', cast(array({{ place.arrival | map('string') | map('sql_text') | join(', ') }}) as array<bigint>), 'op', op, 'row', row),
    map('ignoreNullFields', 'false')) as message
from (
  select
    case when told is null then 'delete' when told_key is null or {{ place.is_whole | lower }} then 'snapshot' else 'update' end as op,
    map_concat(
      coalesce(map_from_arrays({{ names_of(comparison.columns) }}, told), map()),
      coalesce(map_from_arrays({{ names_of(comparison.key) }}, told_key), map())) as row
  from (
    {{ views | each('differing') | join('\n    union all\n    ') }}
  )
  where nth = 1
)
{%- endmacro -%}
{%- macro told_of_all(one) -%} {{ text(one[0]) }}, {{ given_text(one[1]) }} {%- endmacro -%}

{#- What is counted of the rows of `compared`. -#}
{%- macro compared_counts() -%}
to_json(named_struct(
  'read', count(row_there),
  'here', count(row_here),
  'missing', count_if(kind = 'missing'),
  'extra', count_if(kind = 'extra'),
  'different', count_if(kind = 'different'),
  'open', count_if(kind = 'open'),
  'erased', count_if(kind = 'erased')))
{%- endmacro -%}

{#- Values of the key that cut the rows of a mirror into parts of about the same size. -#}
{%- macro key_percentiles(mirror, column, parts) -%}
select array_distinct(percentile_approx({{ name(column) }}, array({% for part in range(1, parts) %}{{ part / parts }}{{ ', ' if not loop.last }}{% endfor %}), 10000)) as bounds
from {{ name(mirror) }}
{%- endmacro -%}

{#- Up to when the log of a mirror's table has told what happened, as far as the mirror has read it and as far as it has landed; and how many changes of
    the table have landed that the mirror has not read. -#}
{%- macro told_until(tables) -%}
select max(at) filter (where is_read) as read_until, max(at) as landed_until, count_if(is_own and not is_read) as behind
from (
  {{ tables | each('told_of_source') | join('\n  union all\n  ') }}
)
{%- endmacro -%}
{%- macro told_of_source(table) -%}
select
    case when kind in ('row', 'ddl') then event_time when kind = 'control' and op in ('heartbeat', 'watermark') then coalesce(event_time, produced_at) end as at,
    batch <= {{ table.batch }} as is_read,
    kind = 'row' and lower(table_name) = {{ text(table.name | lower) }} as is_own
  from {{ name(table.changelog) }}
{%- endmacro -%}

{#- The rows that differ, from views of `compared`: as the table of differences has them. -#}
{%- macro differences_of(comparison, views, verified_at) -%}
select
  {{ text(comparison.mirror.name) }} as mirror, {{ instant(verified_at) }} as verified_at, {{ instant(comparison.until) }} as verified_through,
  kind, key, columns,
  {{ macro('values_' ~ comparison.shows)('row_there', comparison) }} as in_database,
  {{ macro('values_' ~ comparison.shows)('row_here', comparison) }} as in_mirror
from (
  select
    kind, map_from_arrays({{ names_of(comparison.key) }}, key) as key, row_here, row_there,
    if(kind = 'different', filter({{ names_of(comparison.columns) }}, (c, i) -> not row_here[i] <=> row_there[i]), null) as columns
  from (
    {{ views | each('differing') | join('\n    union all\n    ') }}
  )
)
{%- endmacro -%}
{%- macro differing(view) -%} select * from {{ name(view) }} where kind <> 'open' {%- endmacro -%}
{%- macro names_of(columns) -%} array({{ columns | map(attribute='name') | map('sql_text') | join(', ') }}) {%- endmacro -%}
{%- macro values_hidden(row, comparison) -%} cast(null as map<string,string>) {%- endmacro -%}
{%- macro values_shown(row, comparison) -%}
map_filter(map_from_arrays({{ names_of(comparison.columns) }}, {{ row }}), (c, v) -> columns is null or array_contains(columns, c))
{%- endmacro -%}

{%- macro columns_differing(view) -%} select distinct explode(columns) as column from {{ name(view) }} order by column {%- endmacro -%}

{#- What a verification found of a mirror, in one row. -#}
{%- macro verified_row(row) -%}
select
  {{ text(row.mirror) }} as mirror, {{ instant(row.verified_at) }} as verified_at, {{ instant(row.verified_through) }} as verified_through,
  cast({{ row.rows }} as bigint) as rows, cast({{ row.differences }} as bigint) as differences, cast({{ row.open }} as bigint) as open,
  cast(array({{ row.not_compared | map('sql_text') | join(', ') }}) as array<string>) as not_compared
{%- endmacro -%}

{#- The rows of a table of results, with new rows in place of all of these mirrors. -#}
{#- The results of a mirror, and all results with another name for it. -#}
{%- macro results_of(table, mirror) -%} select mirror from {{ name(table) }} where mirror = {{ text(mirror) }} {%- endmacro -%}
{%- macro results_renamed(table, columns, mirror, new) -%}
select {% for column in columns %}{{ 'if(mirror = ' ~ text(mirror) ~ ', ' ~ text(new) ~ ', mirror) as ' if column == 'mirror' }}{{ name(column) }}{{ ', ' if not loop.last }}{% endfor %} from {{ name(table) }}
{%- endmacro -%}
{%- macro results_kept(table, columns, mirrors, new) -%}
select {{ columns | map('name') | join(', ') }} from {{ name(table) }} where mirror not in ({{ mirrors | map('sql_text') | join(', ') }})
union all
{{ new | join('\nunion all\n') }}
{%- endmacro -%}
