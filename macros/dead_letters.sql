{#- Dead letters: those that are alike, those that are expected, and what the format makes of their messages now. -#}

{#- The shape of a detail, which is the same for details that are alike: numbers are `#`, quoted texts of more than 30 characters `"..."`, and a shape has at most 80 characters.
    The shape of a shape is this shape. Texts between quotes are found from the left, so that what stands between two of them is not taken for one. -#}
{%- macro detail_shape(detail) -%}
left(regexp_replace(regexp_replace(left({{ detail }}, 4000), r'\G((?:[^"]++|"[^"]{0,30}")*+)"[^"]{31,}(?:"|\z)', r'$1"..."'), '[0-9]+', '#'), 80)
{%- endmacro -%}

{#- Whether a row of a changelog is a dead letter that one of these waivers waives on a day; never null. -#}
{%- macro is_waived(waivers, day='current_date()') -%} coalesce({{ (waivers | each('waives', day) | join(' or ')) or 'false' }}, false) {%- endmacro -%}
{%- macro waives(waiver, day) -%}
(reason = {{ text(waiver.reason) }}
{%- if waiver.detail %} and {{ detail_shape('detail') }} = {{ detail_shape(text(waiver.detail)) }}{% endif %}
{%- if waiver.table %} and {{ ends_with_names(waiver.table) }}{% endif %}
{%- if waiver.until %} and {{ day }} <= date {{ text(waiver.until | string) }}{% endif %})
{%- endmacro -%}
{%- macro ends_with_names(parts) -%} slice({{ table_of_row() }}, -{{ parts | length }}, {{ parts | length }}) = array({{ parts | map('sql_text') | join(', ') }}) {%- endmacro -%}

{#- The chosen dead letters of some sources, with the id of each and that of its group, and whether it is waived. -#}
{%- macro dead_letters_of(sources, chosen) -%}
select * from (
  select
    *,
    left(sha2(to_json(struct(source, {{ place_of_message() }})), 256), 12) as id,
    left(sha2(to_json(struct(source, reason, shape, named)), 256), 8) as group_id,
    if({{ is_waived_anywhere(sources) }}, 'waived', 'open') as state
  from (
    select *, {{ detail_shape('detail') }} as shape, concat_ws('.', tenant, db_name, schema_name, table_name) as named from (
{{- all_sources(sources, contract) | indent(2) }}
    )
    where kind = 'dead_letter'
  )
)
where true
{%- if chosen.reason %} and reason = {{ text(chosen.reason) }}{% endif %}
{%- if chosen.table %} and {{ ends_with_names(chosen.table) }}{% endif %}
{%- if chosen.since %} and loaded_at >= cast({{ text(chosen.since) }} as timestamp){% endif %}
{%- if chosen.id %} and (id = {{ text(chosen.id) }} or group_id = {{ text(chosen.id) }}){% endif %}
{%- endmacro -%}

{%- macro is_waived_anywhere(sources) -%}
{%- set waiving = sources | selectattr('dead_letters.waived') | list -%}
{{ 'case source' if waiving }}{% for source in waiving %} when {{ text(source.name) }} then {{ is_waived(source.dead_letters.waived) }}{% endfor %}{{ ' else false end' if waiving else 'false' }}
{%- endmacro -%}

{%- macro dead_letter_groups(letters) -%}
select
  group_id as id, source, reason, shape as detail, nullif(named, '') as table, state, count(*) as messages,
  count_if(loaded_at >= current_timestamp() - interval 1 day) as last_day,
  count_if(loaded_at < current_timestamp() - interval 1 day and loaded_at >= current_timestamp() - interval 2 days) as day_before,
  min(loaded_at) as first_seen, max(loaded_at) as last_seen, max_by(id, (loaded_at, id)) as example
from {{ name(letters) }}
group by group_id, source, reason, shape, named, state
order by messages desc, id
{%- endmacro -%}

{#- The messages of dead letters as they came. A part of a message is none. -#}
{%- macro messages_of_dead_letters(letters, source, encoding) -%}
select {{ message_as_it_came(encoding) }}, origin, seq.arrival as arrival
from {{ name(letters) }}
where source = {{ text(source.name) }} and seq.row = 0 and seq.generation = {{ source.generation }} and meta['raw_of'] is null
{%- endmacro -%}
{%- macro message_as_it_came(encoding) -%}
{%- if encoding == 'avro' -%}
unbase64(raw) as raw, meta['own_schema'] as own_schema, cast(null as string) as damage
{%- else -%}
if(meta['raw_encoding'] = 'base64', cast(unbase64(raw) as string), raw) as raw
{%- endif -%}
{%- endmacro -%}

{#- What a format makes now of each message: its rows by kind and operation, and the reason if it is refused again. -#}
{%- macro messages_tried(sql) -%}
select place, max(reason) as reason, max(detail) as detail, sort_array(collect_list(what)) as rows
from (
  select {{ place_of_message(row='0') }} as place, reason, detail, concat_ws(' ', kind, op) as what from (
{{ sql | indent(4, true) }}
  )
)
group by place
{%- endmacro -%}

{#- For each group of dead letters: how many messages would land, as what, and what still refuses the others. -#}
{%- macro groups_tried(letters, tried, source) -%}
select
  group_id as id, source, own.reason, shape as detail, nullif(named, '') as table, count(*) as messages,
  count_if(now.place is not null and now.reason is null) as land,
  array_join(array_sort(collect_set(if(now.reason is null, array_join(array_distinct(now.rows), ', '), null))), ', ') as as_rows,
  array_join(array_sort(collect_set(
    case when now.place is null then if(own.seq.generation = {{ source.generation }}, 'a part of a message', 'of an earlier load') when now.reason is not null then concat_ws(': ', now.reason, {{ detail_shape('now.detail') }}) end)), '; ') as still
from (select *, {{ place_of_message() }} as place from {{ name(letters) }} where source = {{ text(source.name) }}) as own
left join {{ name(tried) }} as now using (place)
group by group_id, source, own.reason, shape, named
order by messages desc, id
{%- endmacro -%}

{#- The messages that the format understands now. -#}
{%- macro messages_to_land(messages, tried) -%}
select own.* from {{ name(messages) }} as own
left semi join {{ name(tried) }} as now on now.reason is null and now.place = {{ place_of_given('own') }}
{%- endmacro -%}
{%- macro place_of_given(of) -%}
to_json(struct({{ of }}.origin.topic, {{ of }}.origin.partition, {{ of }}.origin.file, {{ of }}.arrival, 0 as row))
{%- endmacro -%}

{%- macro newest_dead_letters(letters) -%} select * from {{ name(letters) }} order by loaded_at desc, id {%- endmacro -%}

{#- The same dead letters, with texts that were sealed as they came. Those of some sources are bytes. -#}
{%- macro dead_letters_opened(letters, of_bytes) -%}
select
  * except (raw, origin, meta, opened),
  if(opened is null, raw, if({{ is_text(of_bytes) }}, cast(opened as string), base64(opened))) as raw,
  if(opened is null, origin, opened_origin(origin, mask_keys)) as origin,
  if(opened is null, meta, map_concat(meta, map('raw_encoding', if({{ is_text(of_bytes) }}, null, 'base64')))) as meta
from (
  select *, opened_text(if(meta['raw_encoding'] = 'sealed', raw, null), mask_keys) as opened
  from {{ name(letters) }} cross join mask_keys
)
{%- endmacro -%}
{%- macro is_text(of_bytes) -%}
{{ 'source not in (' ~ of_bytes | map('sql_text') | join(', ') ~ ') and ' if of_bytes }}is_valid_utf8(cast(opened as string))
{%- endmacro -%}

{#- The number of dead letters of a source that are neither waived nor landed since. -#}
{%- macro open_dead_letters(source, chosen) -%} select count(*) as count from ({{ dead_letters_of([source], chosen) }}) where state = 'open' {%- endmacro -%}
