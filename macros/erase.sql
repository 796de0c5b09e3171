{#- Rows of keys that were erased. A record of an erased key has digests of its values, never the values. -#}

{#- What is recorded of erased keys, as a value of SQL. -#}
{%- macro erased_keys(erasures) -%} array({{ erasures | each('erased_key') | join(', ') }}) {%- endmacro -%}
{%- macro erased_key(erasure) -%}
named_struct('names', array({{ erasure.names | map('sql_text') | join(', ') }}), 'at', cast({{ text(erasure.at) }} as timestamp),
      'parts', array({{ erasure.parts | each('erased_part') | join(', ') }}))
{%- endmacro -%}
{%- macro erased_part(part) -%}
named_struct('name', {{ text(part.name) }}, 'prefix', {{ text(part.prefix) }}, 'length', {{ part.length }}, 'digest', {{ text(part.digest) }},
        'told_length', {{ part.told_length }}, 'told_digest', {{ text(part.told_digest) }})
{%- endmacro -%}

{#- `r` is a record, `p` one of its parts. -#}
{%- macro is_erased_value(value) -%}
length({{ value }}) = p.length and sha2(concat(p.prefix, {{ value }}), 256) = p.digest
{%- endmacro -%}
{%- macro is_told_value(value) -%}
length({{ value }}) = p.told_length and sha2(concat(p.prefix, {{ value }}), 256) = p.told_digest
{%- endmacro -%}
{%- macro has_erased_key(map) -%}
coalesce(forall(r.parts, p -> exists(map_entries({{ map }}), e -> lower(e.key) = p.name and {{ is_erased_value('e.value') }})), false)
{%- endmacro -%}
{%- macro names_key_columns(map) -%}
coalesce(forall(r.parts, p -> exists(map_keys({{ map }}), k -> lower(k) = p.name)), false)
{%- endmacro -%}
{#- Whether a text has the values of a key between characters that are neither letters nor digits. -#}
{%- macro holds_erased_key(told) -%}
coalesce(forall(r.parts, p -> exists(
        regexp_extract_all({{ told }}, concat(r'(?s)(?<!\w)(?=(.{', p.told_length, r'})(?!\w))'), 1), w -> {{ is_told_value('w') }})), false)
{%- endmacro -%}

{#- What keys and texts of messages tell, also where they are sealed. -#}
{%- macro keys_told() -%} coalesce(cast({{ unsealed('origin.key') }} as string), origin.key) {%- endmacro -%}
{%- macro text_told() -%} concat_ws(' ', raw, cast(try_to_binary(raw, 'base64') as string), cast({{ unsealed('raw') }} as string), detail) {%- endmacro -%}

{#- Whether a row is of the record's table, and not newer. A row without any time is not. -#}
{%- macro is_of_erased_table() -%} transform({{ table_of_row() }}, n -> lower(n)) = transform(r.names, n -> lower(n)) {%- endmacro -%}
{%- macro is_before_erasing() -%} coalesce(_moment <= r.at, true) {%- endmacro -%}
{#- The rows of a query, which has a column `_is_touched`, each with its fate: `gone`; `left`, if the row got another key and its new side stays;
    `came`, if it had another key and its old side stays; or `kept`. Each step is a generator: Spark would put expressions of a subquery into each of the
    many places that name them. -#}
{%- macro with_fates(rows, erasures) -%}
{%- set keys, tells = erased_keys(erasures), "kind in ('dead_letter', 'control') and op is distinct from 'erased'" -%}
fated as (
  select *
  from (
{{ rows | indent(4, true) }}
  ) cross join mask_keys
  lateral view inline(array(named_struct(
    '_moment', {{ known_time() }},
    '_told', if({{ tells }}, concat_ws(' ', {{ text_told() }}, statement, {{ keys_told() }}, origin.topic), coalesce(cast({{ unsealed('raw') }} as string), raw))))) as _moment, _told
  lateral view inline(array(named_struct(
    '_is_new', exists({{ keys }}, r -> kind = 'row' and {{ is_erased_now() }} and ({{ has_erased_key('key') }} or {{ has_erased_key('after') }})),
    '_is_old', exists({{ keys }}, r -> kind = 'row' and {{ is_erased_now() }} and ({{ has_erased_key('old_key') }} or {{ has_erased_key('before') }})),
    '_tells_old', exists({{ keys }}, r -> {{ is_of_erased_table() }} and {{ names_key_columns('before') }}),
    '_is_told', exists({{ keys }}, r -> _told is not null and {{ is_before_erasing() }}
      and if(table_name is null, contains(lower(_told), lower(element_at(r.names, -1))), {{ is_of_erased_table() }})
      and {{ holds_erased_key('_told') }}),
    '_is_keyed', exists({{ keys }}, r -> {{ is_erased_now() }} and {{ holds_erased_key(keys_told()) }})))) as _is_new, _is_old, _tells_old, _is_told, _is_keyed
  lateral view inline(array(named_struct(
    '_fate', case
      when kind in ('dead_letter', 'control') then if(_is_told, 'gone', 'kept')
      when not (_is_new or _is_old) then 'kept'
      when op <> 'update' or pair_id is not null or _is_new and _is_old then 'gone'
      when _is_old then 'left'
      when old_key is not null or _tells_old then 'came'
      else 'gone' end,
    '_key_before', coalesce(old_key, if(key is null, null, map_filter(before, (c, v) -> array_contains(map_keys(key), c))))))) as _fate, _key_before
)
{%- endmacro -%}
{%- macro is_erased_now() -%} {{ is_of_erased_table() }} and {{ is_before_erasing() }} {%- endmacro -%}

{#- A column of a row after its fate. Of a message there is always its first row, which says where the message lies. -#}
{%- macro column_after_erasing(column) -%}
{%- set kept = "if(_fate = 'kept', " ~ name(column) ~ ", null)" -%}
{{ {
  'kind': "if(_fate = 'gone', 'control', kind)",
  'op': "case _fate when 'gone' then 'erased' when 'came' then 'delete' else op end",
  'key': "case _fate when 'gone' then null when 'came' then _key_before else key end",
  'key_text': "case _fate when 'gone' then null when 'came' then key_text(_key_before) else key_text end",
  'old_key': kept,
  'before': "if(_fate in ('kept', 'came'), before, null)",
  'after': "case _fate when 'kept' then after when 'left' then map_concat(map_filter(coalesce(before, map()), "
    ~ "(c, v) -> not array_contains(map_keys(coalesce(after, map())), c) and not array_contains(map_keys(key), c)), after) end",
  'before_image': "case _fate when 'gone' then null when 'left' then 'none' else before_image end",
  'after_image': "case _fate when 'gone' then null when 'came' then 'none' else after_image end",
  'changed': kept,
  'types': "if(_fate = 'gone', null, types)",
  'tx_id': "if(_fate = 'gone', null, tx_id)",
  'pair_id': "if(_fate = 'gone', null, pair_id)",
  'meta': "if(_fate = 'gone', null, meta)",
  'statement': "if(_fate = 'gone', null, statement)",
  'reason': "if(_fate = 'gone', null, reason)",
  'detail': "if(_fate = 'gone', null, detail)",
  'raw': "if(_fate = 'kept' and not _is_touched and not _is_told, raw, null)",
  'origin': origin_after_erasing(),
}.get(column, name(column)) }} as {{ name(column) }}
{%- endmacro -%}
{%- macro origin_after_erasing() -%}
if(_fate = 'kept' and not _is_touched and not _is_keyed, origin,
    named_struct('topic', origin.topic, 'partition', origin.partition, 'offset', origin.offset, 'timestamp', origin.timestamp, 'key', cast(null as string),
      'headers', cast(null as array<struct<key string, value string>>), 'file', origin.file, 'block', origin.block))
{%- endmacro -%}

{#- The rows of messages that land. -#}
{%- macro landing_without_erased(sql, erasures, columns) -%}
with {{ with_fates('select *, false as _is_touched from (\n' ~ sql ~ '\n)', erasures) }}
select {{ columns | each('column_after_erasing') | join(',\n  ') }}
from fated
where _fate <> 'gone' or seq.row = 0
{%- endmacro -%}

{#- The rows of a changelog that an erasure concerns. -#}
{%- macro rows_erased(rows, erasures) -%}
with {{ with_fates('select *, false as _is_touched from ' ~ name(rows), erasures) }}
select {{ place_of_whole() }} as place, kind, _fate as fate, _moment as moment, origin.file as file from fated where _fate <> 'kept'
{%- endmacro -%}

{#- How many rows of each kind are concerned, how many of them keep the side of another key, and when the newest was written. -#}
{%- macro erased_counts(erased) -%}
select count_if(kind = 'row') as rows, count_if(kind = 'row' and fate <> 'gone') as moved, count_if(kind = 'dead_letter') as letters,
  count_if(kind = 'control') as controls, unix_micros(max(moment)) as newest
from {{ name(erased) }}
{%- endmacro -%}
{#- How many dead letters hold the values, whatever table they name. -#}
{%- macro others_holding(rows, erasures) -%}
select count(*) as letters from {{ name(rows) }} cross join mask_keys
where kind = 'dead_letter'
  and exists({{ erased_keys(erasures) }}, r -> {{ holds_erased_key(text_told()) }})
{%- endmacro -%}

{#- Values that only rows of an erased key have: they stand in no other message, not even as a word of a type. -#}
{%- macro telling_values(rows, erased, erasures, shortest, most) -%}
with {{ with_fates('select *, false as _is_touched from ' ~ name(rows), erasures) }},
own as (
  select value
  from fated
    lateral view explode(array(
      named_struct('image', before, 'is_gone', _fate in ('gone', 'left')), named_struct('image', after, 'is_gone', _fate in ('gone', 'came')))) as side
    lateral view explode(map_values(side.image)) as value
  where kind = 'row' and length(value) >= {{ shortest }}
  group by value having bool_and(side.is_gone)
  order by length(value) desc, value limit {{ most }}
),
others as (
  select concat_ws(' ', to_json(types), raw) as told
  from {{ name(rows) }} where {{ place_of_whole() }} not in (select place from {{ name(erased) }})
)
select value from own left anti join others on contains(told, value)
{%- endmacro -%}

{#- The tables of a changelog whose names end with these parts, with the columns of their keys. -#}
{%- macro tables_ending_with(rows, parts) -%}
select distinct {{ table_of_row() }} as names, array_sort(map_keys(key)) as key_columns from {{ name(rows) }}
where kind = 'row' and slice(transform({{ table_of_row() }}, n -> lower(n)), -{{ parts | length }}, {{ parts | length }}) = array({{ parts | map('sql_text') | join(', ') }})
{%- endmacro -%}

{#- All rows of messages that an erasure concerns, as they are afterwards. -#}
{%- macro touched_rows(rows, erased, more='') -%}
select own.*{{ more }}, touched.place is not null as _is_touched
from {{ rows }} as own
left join (select distinct place from {{ name(erased) }}) as touched on touched.place = {{ place_of_whole('own.') }}
{%- endmacro -%}
{%- macro rows_after_erasing(rows, erasures) -%}
with {{ with_fates(rows, erasures) }}
select {{ contract | each('column_after_erasing') | join(',\n  ') }}
from fated
where _fate <> 'gone' or seq.row = 0
{%- endmacro -%}
{%- macro changes_of_erasing(rows, erased, erasures) -%}
with {{ with_fates(touched_rows(name(rows), erased) ~ '\nwhere touched.place is not null', erasures) }}
select {{ contract | each('column_after_erasing') | join(',\n  ') }},
  kind as _kind, _fate = 'gone' and seq.row > 0 as _is_gone
from fated
{%- endmacro -%}
{%- macro changes_merged(table, changes) -%}
merge into {{ table }} as own using {{ name(changes) }} as new
on own.kind = new._kind and own.landed_on = new.landed_on and own.batch = new.batch and own.seq.row = new.seq.row
  and {{ place_of_whole('own.') }} = {{ place_of_whole('new.') }}
when matched and new._is_gone then delete
when matched then update set {{ contract | each('column_set') | join(', ') }}
{%- endmacro -%}

{#- Files of a changelog in a folder: those that have rows to be changed, and all their rows. -#}
{%- macro files_touched(table, erased) -%}
select distinct _metadata.file_path as file from {{ table }} where {{ place_of_whole() }} in (select place from {{ name(erased) }})
{%- endmacro -%}
{%- macro rows_of_files_after_erasing(table, files, erased, erasures) -%}
{%- set rows -%}
(select {{ contract | map('name') | join(', ') }} from {{ table }} where _metadata.file_path in ({{ files | map('sql_text') | join(', ') }}))
{%- endset -%}
{{ rows_after_erasing(touched_rows(rows, erased), erasures) }}
{%- endmacro -%}

{#- The files of all messages of which a row was erased, now or before. -#}
{%- macro files_of_erased(rows, erased) -%}
select file from {{ name(erased) }} union select origin.file from {{ name(rows) }} where kind = 'control' and op = 'erased'
{%- endmacro -%}

{#- Rows of an erased key in a table that has its columns; `columns` maps the parts of the key to them. -#}
{%- macro rows_of_key(table, columns) -%} select count(*) as rows from {{ table }} where {{ is_row_of_key(columns) }} {%- endmacro -%}
{%- macro rows_of_key_removed(table, columns) -%} delete from {{ table }} where {{ is_row_of_key(columns) }} {%- endmacro -%}
{%- macro is_row_of_key(columns) -%} {{ columns | each('is_column_of_key') | join(' and ') }} {%- endmacro -%}
{%- macro is_column_of_key(column) -%}
sha2(concat({{ text(column[1].prefix) }}, cast({{ name(column[0]) }} as string)), 256) = {{ text(column[1].digest) }}
{%- endmacro -%}
{%- macro differences_without_key(table, mirrors, erasures) -%}
select * from {{ name(table) }}
where not (mirror in ({{ mirrors | map('sql_text') | join(', ') }}) and exists({{ erased_keys(erasures) }}, r -> {{ has_erased_key('key') }}))
{%- endmacro -%}
{%- macro differences_with_key(table, mirrors, erasures) -%}
select count(*) as rows from {{ name(table) }}
where mirror in ({{ mirrors | map('sql_text') | join(', ') }}) and exists({{ erased_keys(erasures) }}, r -> {{ has_erased_key('key') }})
{%- endmacro -%}
{%- macro rows_emptied(table) -%} select * from {{ name(table) }} where false {%- endmacro -%}

{#- What is left in files: the number of rows that have the key in the images of a change, in columns of their own, or one of some values. -#}
{%- macro rows_left(view, columns, erasures, values) -%}
select count(*) as rows from (select *, to_json(struct({{ columns.searched | map('name') | join(', ') }})) as _row_told from {{ name(view) }})
where {{ macro('left_in_' ~ columns.kind)(columns, erasures) }}
  or exists (select 1 from {{ name(values) }} as told where contains(_row_told, told.value))
{%- endmacro -%}
{%- macro left_in_changelog(columns, erasures) -%}
exists({{ erased_keys(erasures) }}, r -> {{ is_of_erased_table() }} and ({{ columns.names | each('has_erased_key') | join(' or ') }}))
{%- endmacro -%}
{%- macro left_in_table(columns, erasures) -%} {{ is_row_of_key(columns.names) }} {%- endmacro -%}
{%- macro left_in_other(columns, erasures) -%} false {%- endmacro -%}

{#- Old versions, and files that no version has any more. -#}
{%- macro delta_rewritten(target, model) -%} reorg table {{ folder_table('delta', target.at(model)) }} apply (purge) {%- endmacro -%}
{%- macro delta_vacuumed_at_once(target, model) -%} vacuum {{ folder_table('delta', target.at(model)) }} retain 0 hours {%- endmacro -%}
{%- macro properties_unset(table, properties) -%} alter table {{ table }} unset tblproperties if exists ({{ properties | map('sql_text') | join(', ') }}) {%- endmacro -%}
{%- macro iceberg_rewritten(target, model) -%}
call {{ iceberg_procedure(target, model, 'rewrite_data_files') }}, options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true'))
{%- endmacro -%}
{%- macro iceberg_expired_at_once(target, model, now) -%}
call {{ iceberg_procedure(target, model, 'expire_snapshots') }}, older_than => timestamp {{ text(now) }}, retain_last => 1)
{%- endmacro -%}

{#- Of rows that a table of a database has and its mirror lacks, those that were erased. -#}
{%- macro compared_but_erased(compared, comparison, erasures) -%}
with compared as (
{{ compared | indent(2, true) }}
)
select * except (kind),
  if(kind = 'missing' and exists({{ erased_keys(erasures) }}, r -> {{ has_erased_key('map_from_arrays(' ~ names_of(comparison.key) ~ ', key)') }}), 'erased', kind) as kind
from compared
{%- endmacro -%}
