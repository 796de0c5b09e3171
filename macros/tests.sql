{#- Data tests: each returns the rows that fail. Where one look at each row is enough, `passes_NAME` beside `test_NAME`, with the same arguments but the
    model, is an aggregate of the table that is true if no row fails: tests of one table that have it read the table together. -#}

{#- One row about a table: for each test, in a column of its name, whether no row fails. `passes` has the aggregate of each test. -#}
{%- macro tested_together(model, passes) -%}
select
  {%- for test, passing in passes.items() %}
  {{ passing }} as {{ name(test) }}{{ ',' if not loop.last }}
  {%- endfor %}
from {{ model }}
{%- endmacro -%}

{#- The rows of a model that a test looks at. -#}
{%- macro rows_where(model, condition) -%} (select * from {{ model }} where {{ bracketed(condition) }}) {%- endmacro -%}

{#- SQL that a user has written as a part of a query: its comments end with its lines, its operators in its brackets. -#}
{%- macro bracketed(sql) -%}
(
  {{ sql }}
)
{%- endmacro -%}

{%- macro first_rows(sql, limit) -%}
select * from (
  {{ sql | indent(2) }}
) limit {{ limit }}
{%- endmacro -%}

{#- What a test makes of the rows that fail, in one row. -#}
{%- macro judged_failures(sql, config) -%}
{%- set warns, fails = bracketed('failures ' ~ config.warn_if), bracketed('failures ' ~ config.error_if) -%}
select failures, coalesce({{ warns }}, false) as warns, coalesce({{ fails }}, false) as fails
from (
  select {{ bracketed(config.fail_calc) }} as failures from (
    {{ sql | indent(4) }}
  )
)
{%- endmacro -%}

{#- A column, or what a map in it has under a key: `after['id']`. -#}
{%- macro column_path(column) -%}
{%- set base = column.split("['")[0] if column.endswith("']") else column -%}
{{ name(base) }}{{ column[base | length:] }}
{%- endmacro -%}

{#- A name for what is no column of its own. -#}
{%- macro named_as(column) -%}{% if column.endswith("']") %} as {{ name(column) }}{% endif %}{%- endmacro -%}

{%- macro test_row_count(model, at_least=0, at_most=none) -%}
select count(*) as rows from {{ model }} having count(*) < {{ bracketed(at_least) }}{% if at_most is not none %} or count(*) > {{ bracketed(at_most) }}{% endif %}
{%- endmacro -%}

{%- macro passes_row_count(at_least=0, at_most=none) -%}
count(*) >= {{ bracketed(at_least) }}{% if at_most is not none %} and count(*) <= {{ bracketed(at_most) }}{% endif %}
{%- endmacro -%}

{#- Whether the newest row is too old: `within` is an interval such as `1 day`. -#}
{%- macro test_fresh(model, column, within) -%}
select max({{ column_path(column) }}) as newest from {{ model }}
having coalesce(max({{ column_path(column) }}) < current_timestamp() - {{ bracketed('interval ' ~ within) }}, true)
{%- endmacro -%}

{%- macro passes_fresh(column, within) -%}
coalesce(max({{ column_path(column) }}) >= current_timestamp() - {{ bracketed('interval ' ~ within) }}, false)
{%- endmacro -%}

{%- macro test_not_null(model, column) -%}
select * from {{ model }} where {{ column_path(column) }} is null
{%- endmacro -%}

{%- macro passes_not_null(column) -%} count_if({{ column_path(column) }} is null) = 0 {%- endmacro -%}

{%- macro test_unique(model, column) -%}
{%- set value = column_path(column) -%}
select {{ value }}{{ named_as(column) }}, count(*) as n_records from {{ model }} where {{ value }} is not null group by {{ value }} having count(*) > 1
{%- endmacro -%}

{%- macro test_accepted_values(model, column, values, quote='true') -%}
{%- set value = column_path(column) -%}
select {{ value }}{{ named_as(column) }}, count(*) as n_records from {{ model }}
where {{ not_accepted(value, values, quote) }}
group by {{ value }}
{%- endmacro -%}

{%- macro passes_accepted_values(column, values, quote='true') -%}
count_if({{ not_accepted(column_path(column), values, quote) }}) = 0
{%- endmacro -%}

{%- macro not_accepted(value, values, quote) -%}
{{ value }} is not null and {% if quote == 'false' %}{{ value }} not in ({% for one in values %}{{ bracketed(one) }}{{ ', ' if not loop.last }}{% endfor %})
{%- else %}cast({{ value }} as string) not in ({{ values | map('sql_text') | join(', ') }}){% endif %}
{%- endmacro -%}

{%- macro test_relationships(model, column, to, field) -%}
{%- set value = column_path(column) -%}
select {{ value }}{{ named_as(column) }}, count(*) as n_records from {{ model }} as child
where {{ value }} is not null
  and not exists (select 1 from {{ ref(to) }} as parent where parent.{{ name(field) }} = child.{{ value }})
group by {{ value }}
{%- endmacro -%}

{%- macro test_expression_is_true(model, expression) -%}
select * from {{ model }} where not coalesce({{ bracketed(expression) }}, false)
{%- endmacro -%}

{%- macro passes_expression_is_true(expression) -%} count_if(not coalesce({{ bracketed(expression) }}, false)) = 0 {%- endmacro -%}

{#- The values that do not fit the types of their columns: those of a mirror's rows, which are null there, and those of keys, whose changes are not there. -#}
{%- macro test_fits(model, mirror) -%} {{ macro('unfit_' ~ mirror.ways.unfit)(model, mirror) }} {%- endmacro -%}
{%- macro unfit_unknown(model, mirror) -%} {{ unfit_values(model, mirror) }} {%- endmacro -%}

{#- Without the values of which a person knows. -#}
{%- macro unfit_known_in_part(model, mirror) -%}
select * except (changed_at) from (
  {{ unfit_values_with_times(model, mirror) | indent(2) }}
)
where not ({{ mirror.known_unfit | each('is_known_unfit') | join(' or ') }})
{%- endmacro -%}
{%- macro unfit_values_with_times(model, mirror) -%}
{{ unfit_values(model, mirror, ', _changed_at as changed_at', ', valid_from', ', cast(null as timestamp)') }}
{%- endmacro -%}

{#- Whether a person knows today of a value; never null. Of a change without a time it is not told if it came later. -#}
{%- macro is_known_unfit(known) -%}
(lower(unfit_column) = lower({{ text(known.column) }})
{%- if known.through is not none %} and coalesce(changed_at < timestamp_micros({{ known.through }}), true){% endif %}
{%- if known.until %} and current_date() <= date {{ text(known.until | string) }}{% endif %})
{%- endmacro -%}

{#- The number of values of which a person knows, for each column and for each entry of what is acknowledged. -#}
{%- macro acknowledged_unfit(model, mirror) -%}
select unfit_column, known, count(*) as rows
from (
  select unfit_column, case{% for known in mirror.known_unfit %} when {{ is_known_unfit(known) }} then {{ loop.index0 }}{% endfor %} end as known
  from (
    {{ unfit_values_with_times(model, mirror) | indent(4) }}
  )
)
where known is not null
group by unfit_column, known
order by unfit_column, known
{%- endmacro -%}

{%- macro unfit_values(model, mirror, time='', time_of_key='', no_time='') -%}
select {% for column in mirror.key %}{{ name(column) }}, {% endfor %}unfit_column, unfit_value{{ time }} from {{ model }} lateral view explode(_unfit) as unfit_column, unfit_value
{{- macro('unfit_keys_' ~ mirror.ways.rejects)(mirror, time_of_key, no_time) }}
{%- endmacro -%}

{%- macro unfit_keys_none(mirror, time, no_time) -%} {%- endmacro -%}
{%- macro unfit_keys_all(mirror, time, no_time) %}
union all
select 'no key', 'of ' || count(*) || ' changes'{{ no_time }} from (
  with
  {{ told_of(mirror) | indent(2) }}
  select * from sent
)
having count(*) > 0
{%- endmacro -%}
{%- macro unfit_keys_unkeyed(mirror, time, no_time) %}
union all
select {% for column in mirror.key %}key_after.{{ name(column) }}, {% endfor %}part.column, part.value{{ time }}
from (
  with
  {{ told_of(mirror) | indent(2) }},

  {{ keyed_of(mirror) | indent(2) }}
  select * from keyed
)
lateral view explode(filter(array(
  {%- for column in mirror.key %}
  struct({{ text(column) }} as column, {{ sent_key_after(column) }} as value, key_after.{{ name(column) }} is null as is_unfit){{ ',' if not loop.last }}
  {%- endfor %}), one -> one.is_unfit)) as part
{%- endmacro -%}

{#- What a mirror may be wrong in, since it cannot be known: statements that cannot be followed, with the number of rows that were told before them, and columns
    of which no change tells what some rows have. -#}
{%- macro test_followed(model, mirror) -%}
select 'statement' as lost, lost.statement as what, lost.why, lost.source, lost.batch, count(*) as rows
from {{ name(mirror.name ~ '__lost') }} as lost
join {{ model }} as own on lost.at is null or own._changed_at is null or own._changed_at <= lost.at or own._in_parts
group by all
union all
select 'column', untold, 'no change tells what these rows have', null, null, rows
from (select untold, count(*) as rows from {{ model }} lateral view explode(array_remove(_untold, '')) as untold group by untold)
-- Not columns that the table has no more: the newest row does not have them either, of those that were told with all columns of the table.
where not array_contains(
  (select coalesce(max_by(_untold, _seq) filter (where array_contains(_untold, '') is not true), array()) from {{ model }}), untold)
order by all
{%- endmacro -%}

{#- The rows of a mirror that its changes do not make, and those that they make and it does not have. Of a mirror with a key, `share` is the part of all keys
    that are compared: others on each day. -#}
{%- macro test_mirrored(model, query, share=1) -%}
{%- set columns = (query.compared | map('name') | join(', ')) ~ ', array_sort(map_entries(_unfit)) as _unfit' -%}
with
{%- for parent in query.mirror.models %}
{{ name(parent) }} as (select * from {{ name(read_rows_view(query.model, parent)) }}),
{%- endfor %}
_expected as (
  select {{ columns }} from (
    {{ macro('mirror_' ~ query.shows)(query) | indent(4) }}
  )
),
_found as (
  select {{ columns }} from {{ model }}
  {%- for share in query.shares %} where {{ is_sampled('struct(' ~ (query.mirror.key | map('name') | join(', ')) ~ ')', share) }}{% endfor %}
)
select 'not in the mirror' as difference, * from (select * from _expected except all select * from _found)
union all
select 'only in the mirror', * from (select * from _found except all select * from _expected)
order by {% for column in query.mirror.columns if column.is_key %}{{ name(column.name) }}, {% endfor %}difference
{%- endmacro -%}

{#- What is wrong with the newest verification of a mirror (`runner verify`): there is none, it is too old, or it has found rows that differ. -#}
{%- macro test_verified(model, mirror, within_days=7) -%}
select {{ text(mirror.name) }} as mirror, verified_at, verified_through, differences
from (select 1) left join {{ name('verified') }} as own on own.mirror = {{ text(mirror.name) }}
where coalesce(differences > 0 or verified_at < current_timestamp() - make_dt_interval({{ within_days }}), true)
{%- endmacro -%}

{#- Messages read = messages landed. The view `<source>_read_again` has the places that were read, with a new count of their messages; `<source>_gone`
    has the files that are not there any more and cannot be counted again, `<source>_changed` those whose content is not what was read. -#}
{%- macro test_conserved(source) -%}
{{ conserved_topics(source) if source.messages.topics else conserved_files(source) }}
{%- endmacro -%}

{%- macro conserved_files(source) -%}
with read_places as (
  select place, sum(messages) as messages_read from {{ name(source.name ~ '_read_again') }} group by place
),
landed_places as (
  select origin.file as place, count_if(seq.row = 0) as messages_landed from {{ name(source.model) }} group by origin.file
)
select
  place,
  coalesce(messages_read, 0) as messages_read,
  coalesce(messages_landed, 0) as messages_landed,
  if(value is null, null, 'changed since it was read') as content
from read_places full join landed_places using (place) left join {{ name(source.name ~ '_changed') }} on place = value
where (coalesce(messages_read, 0) <> coalesce(messages_landed, 0) or value is not null)
  and place not in (select value from {{ name(source.name ~ '_gone') }})
{%- endmacro -%}

{%- macro conserved_topics(source) -%}
select place, messages_read, messages_landed, not_landed, landed_twice, first_offset
from {{ name(source.name ~ '_read_again') }}
where not_landed > 0 or landed_twice > 0
{%- endmacro -%}

{%- macro landed_files(source) -%} select distinct origin.file as file from {{ name(source.model) }} {%- endmacro -%}

{#- What is there and what has landed, offset by offset, for each partition that was read. Counts alone are not enough: messages that retention or
    compaction removed since must not make up for messages that landed twice. Where old rows were removed from the table (`is_thinned`), offsets
    before the first row that is left are not compared. -#}
{%- macro topics_recounted(source, is_thinned) -%}
{%- set again = source.name ~ '_read_again' -%}
with offsets as (
  select topic, partition, offset, 1 as there, 0 as landed from {{ name(again ~ '_there') }}
  union all
  select origin.topic, origin.partition, origin.offset, 0 as there, 1 as landed from {{ name(source.model) }} where seq.row = 0
),
messages as (
  select topic, partition, offset, sum(there) as there, sum(landed) as landed
  from offsets join {{ name(again ~ '_ranges') }} as range using (topic, partition)
  {%- if is_thinned %}
  join (select origin.topic, origin.partition, min(origin.offset) as kept from {{ name(source.model) }} group by 1, 2) using (topic, partition)
  {%- endif %}
  where offset >= {{ 'greatest(range.first, kept)' if is_thinned else 'range.first' }} and offset < range.next
  group by topic, partition, offset
)
select
  concat(topic, '/', partition) as place,
  sum(there) as messages_read,
  sum(landed) as messages_landed,
  count_if(landed = 0) as not_landed,
  count_if(landed > 1) as landed_twice,
  count_if(there = 0) as removed,
  min(offset) filter (where landed <> 1) as first_offset
from messages
group by topic, partition
order by topic, partition
{%- endmacro -%}
