{#- Messages that are kept, read again with the spec as it is now; and what their rows are otherwise than the rows that landed. -#}

{#- The messages of a slice of a changelog whose text is kept, as they came, with their places; and others of the slice that are in a topic. -#}
{%- macro messages_kept(source, slice, encoding, in_topic='') -%}
select {{ message_as_it_came(encoding) }}, origin, seq.arrival as arrival, {{ place_of_whole() }} as place
from {{ name(source.model) }}
where {{ is_in_slice(source, slice) }} and {{ is_kept(source) }}
{%- if slice.most is not none %}
order by batch desc, place limit {{ slice.most }}{% endif %}
{%- if in_topic %}
union all
select * from (select *, {{ place_of_whole(arrival='arrival') }} as place from {{ name(in_topic) }})
where place in (
  select {{ place_of_whole() }} from {{ name(source.model) }}
  where {{ is_in_slice(source, slice) }} and {{ is_of_load(source) }} and not {{ is_kept(source) }})
{%- endif %}
{%- endmacro -%}

{%- macro messages_in_slice(source, slice) -%}
select count(*) as messages, count_if({{ is_kept(source) }}) as kept from {{ name(source.model) }} where {{ is_in_slice(source, slice) }}
{%- endmacro -%}
{%- macro messages_counted(kept) -%} select count(*) as messages from {{ name(kept) }} {%- endmacro -%}

{%- macro is_in_slice(source, slice) -%}
seq.row = 0
{%- if slice.since %} and loaded_at >= cast({{ text(slice.since) }} as timestamp){% endif %}
{%- if slice.until %} and loaded_at < cast({{ text(slice.until) }} as timestamp){% endif %}
{%- if slice.batches is not none %} and ({{ (slice.batches | each('batch_between') | join(' or ')) or 'false' }}){% endif %}
{%- if slice.table or slice.reason %}
  and {{ place_of_whole() }} in (
    select {{ place_of_whole() }} from {{ name(source.model) }} where true
    {%- if slice.table %} and {{ ends_with_names(slice.table) }}{% endif %}
    {%- if slice.reason %} and reason = {{ text(slice.reason) }}{% endif %})
{%- endif %}
{%- endmacro -%}
{%- macro batch_between(range) -%} (batch >= {{ range[0] }} and batch < {{ range[1] }}) {%- endmacro -%}

{#- Rows of an earlier load stay those of that load. A tombstone has no text. Of a message in several parts the dead letter of one part is not the message. -#}
{%- macro is_kept(source) -%}
coalesce((raw is not null or op = 'tombstone') and {{ is_of_load(source) }}
{%- if source.format.message.has_parts %} and (kind <> 'dead_letter' or meta['raw_of'] = 'message'){% endif %}, false)
{%- endmacro -%}

{%- macro is_of_load(source) -%} seq.generation = {{ source.generation }} {%- endmacro -%}

{%- macro messages_of_kept(kept) -%} select * except (place) from {{ name(kept) }} {%- endmacro -%}

{#- The rows that a query makes of messages now. -#}
{%- macro rows_now(sql) -%}
select *, {{ place_of_whole() }} as place from (
{{ sql | indent(2, true) }}
)
{%- endmacro -%}

{#- Each row that is otherwise now, or is not there on one side, with the values that differ. Rows of a message are paired in their order. -#}
{%- macro rows_otherwise(source, kept, now) -%}
select place, names, is_ddl, was, becomes, differs, origin from (
  select
    coalesce(old.place, new.place) as place, coalesce(old.origin, new.origin) as origin,
    array({{ table_of_row('old.') }}, {{ table_of_row('new.') }}) as names,
    coalesce(old.kind = 'ddl', false) or coalesce(new.kind = 'ddl', false) as is_ddl,
    {{ in_words('old') }} as was, {{ in_words('new') }} as becomes,
    if(not {{ in_words('old') }} <=> {{ in_words('new') }}, array(), concat(
      {{ compared_columns() }})) as differs
  from (
    select *, {{ place_of_whole() }} as place from {{ name(source.model) }}
    where {{ place_of_whole() }} in (select place from {{ name(kept) }})
  ) as old
  full outer join {{ name(now) }} as new on old.place = new.place and old.seq.row = new.seq.row
)
where not was <=> becomes or size(differs) > 0
{%- endmacro -%}
{%- macro in_words(side) -%} nullif(concat_ws(' ', {{ side }}.kind, {{ side }}.op, {{ side }}.reason), '') {%- endmacro -%}

{#- What differs in each column of the contract, but for those of the run, of the source, and of the message itself. -#}
{%- macro compared_columns() -%}
{%- for column, kind in contract.items() if column not in ['source', 'format', 'seq', 'origin', 'raw', 'run_id', 'batch', 'loaded_at', 'landed_on'] -%}
{{ macro('members_otherwise' if kind.startswith('map') else 'value_otherwise')(column) }},
      {% endfor -%}
{{ value_otherwise('seq.phase') }},
      {{ value_otherwise('seq.position') }},
      {{ sealed_otherwise() }}
{%- endmacro -%}

{#- Each difference: what differs, as it was and as it is now. How the text of a message is kept is none. -#}
{%- macro value_otherwise(column) -%}
if(old.{{ column }} <=> new.{{ column }}, array(), array({{ difference(text(column), column) }}))
{%- endmacro -%}
{#- A text that is sealed with another secret, or was not sealed. -#}
{%- macro sealed_otherwise() -%}
if(coalesce(new.meta['raw_encoding'], old.meta['raw_encoding']) <=> 'sealed' and not old.raw <=> new.raw,
        array(struct('raw' as what, if(old.meta['raw_encoding'] <=> 'sealed', 'sealed', 'not sealed') as was, 'sealed anew' as is)), array())
{%- endmacro -%}
{%- macro members_otherwise(column) -%}
transform(
        filter(
          array_union({{ members_of('old.' ~ column) }}, {{ members_of('new.' ~ column) }}),
          c -> c not in ('raw_encoding', 'raw_of', 'own_schema') and not ({{ member_at('old.' ~ column) }} <=> {{ member_at('new.' ~ column) }})),
        c -> {{ difference("concat('" ~ column ~ ".', c)", column ~ '[c]') }})
{%- endmacro -%}
{%- macro members_of(map) -%} coalesce(map_keys({{ map }}), array()) {%- endmacro -%}
{#- A column that was not sent is not one that is null. -#}
{%- macro member_at(map) -%} struct(map_contains_key({{ map }}, c), {{ map }}[c]) {%- endmacro -%}
{%- macro difference(what, of) -%}
struct({{ what }} as what, cast(old.{{ of }} as string) as was, cast(new.{{ of }} as string) as is)
{%- endmacro -%}

{#- Rows that are otherwise in the same way, as one, with an example. -#}
{%- macro rows_otherwise_grouped(otherwise) -%}
select
  nullif(array_join(array_max(names), '.'), '') as table,
  was, becomes, nullif(array_join(transform(differs, d -> d.what), ', '), '') as differs,
  count(*) as rows, count(distinct place) as messages,
  min(struct(place, {{ place_in_words() }} as at, get(differs, 0) as first)) as example
from {{ name(otherwise) }}
group by 1, 2, 3, 4
order by rows desc, table, was, becomes, differs
{%- endmacro -%}
{%- macro place_in_words() -%}
coalesce(concat_ws(' ', origin.topic, origin.partition, origin.offset), '') || coalesce(regexp_extract(origin.file, '[^/]*$', 0), '')
{%- endmacro -%}

{#- The tables of rows that are otherwise. -#}
{%- macro tables_otherwise(otherwise) -%}
select distinct explode(names) as names, is_ddl from {{ name(otherwise) }}
{%- endmacro -%}

{%- macro sample_otherwise(kept, otherwise) -%}
select (select count(*) from {{ name(kept) }}) as messages, (select count(distinct place) from {{ name(otherwise) }}) as otherwise
{%- endmacro -%}

{#- The messages of which a row is otherwise. -#}
{%- macro messages_otherwise(kept, otherwise) -%}
select * except (place) from {{ name(kept) }} where place in (select place from {{ name(otherwise) }})
{%- endmacro -%}
