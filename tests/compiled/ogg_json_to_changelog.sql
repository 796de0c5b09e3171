-- ogg_json_to_changelog: the messages of source ogg_json, as rows of the changelog
-- format     ogg_json: Oracle GoldenGate to Kafka, JSON of operations (format json)
-- reads      ogg_json_messages: raw string, origin struct, arrival array
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`op_type` string, `table` string, `tokens` struct<`6` string, `R` string, `L` string>, `op_ts` string, `current_ts` string,
        `pos` string, `after` map<string,string>, `before` map<string,string>, `primary_keys` array<string>, `_seal` string,
        `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '2')) as document
  from `ogg_json_messages`
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, raw, message.document as m, message.reason as parse_error, message.misfits
  from (select *, `ogg_json_message`(document, raw) as message from decoded)
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    coalesce(
      case when raw is null then 'control tombstone' end,
      case m.`op_type` when 'I' then 'row insert' when 'U' then 'row update' when 'D' then 'row delete' when 'T' then 'ddl truncate' end) as
        verdict
  from parsed
),

-- The images of each row change.  [before, after]
message_images as (
  select *,
    case when verdict in ('row update', 'row delete') then m.`before` end as found_before,
    case when verdict in ('row insert', 'row update') then m.`after` end as found_after
  from classified
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`op_type` is null, 'no-op', 'unknown-op')
      when verdict not like 'row %' then null
      when verdict = 'row insert' and array_contains(misfits, 'after') then 'row-not-an-object'
      when verdict = 'row update' and (array_contains(misfits, 'after') or array_contains(misfits, 'before')) then 'row-not-an-object'
      when verdict = 'row delete' and array_contains(misfits, 'before') then 'row-not-an-object'
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0 or verdict = 'row update'
        and found_after is not null and size(found_before) > 0, false) then 'no-row-image' end as reason,
    key_columns(m.`primary_keys`, array()) as key_names, cast(null as map<string,string>) as types
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, if(reason is null, null, raw) as raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    0 as row_index,
    case when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(reason is null, table_columns(found_before, null, array()), null) as sent_before,
    if(reason is null, table_columns(found_after, null, array()), null) as sent_after,
    case when reason is null and verdict = 'row insert' then other_image(m.`before`, coalesce(found_before, found_after), array())
      when reason is null and verdict = 'row delete' then other_image(m.`after`, coalesce(found_before, found_after), array())
        end as other_image
  from checked
),

-- Both images in canonical text; one of only some columns is laid over the other.  [before.over, after.over]
images as (
  select *, if(size(sent_before) > 0, sent_before, null) as before,
    if(verdict = 'row update' and sent_before is not null, map_concat(sent_before, sent_after), sent_after) as after,
    map_keys(sent_before) as columns_before, map_keys(sent_after) as columns_after
  from exploded
),

-- The key columns, looked up in the images; null if one of them is missing.  [key]
keyed as (
  select *,
    case when kind = 'row' then columns_of(after, before, key_names) end as key,
    if(op = 'update' and arrays_overlap(key_names, columns_before), columns_of(before, after, key_names), null) as key_before
  from images
)

-- The columns of the contract, in its order.
select
  kind, 'ogg_json' as source, 'ogg_json' as format, op, cast(null as string) as tenant,
  nullif(regexp_extract(m.`table`, '^(?s)(.*?)\\..*?\\..*$', 1), '') as db_name,
  nullif(regexp_extract(m.`table`, '^(?s)(?:.*?\\.)?(.*?)\\..*$', 1), '') as schema_name,
  nullif(regexp_extract(m.`table`, '^(?s)(?:(?:.*?\\.)?.*?\\.)?(.*)$', 1), '') as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after,
  case when kind <> 'row' then null when before is not null and verdict in ('row update', 'row delete') then 'partial'
    else completeness(before, after, types, key_names) end as before_image,
  case when kind <> 'row' then null when after is not null and verdict = 'row update' then 'partial' when before is null
    and verdict = 'row update' then 'partial' else completeness(after, before, types, key_names) end as after_image,
  case when op = 'update' then changed_among(columns_after, before, after) end as changed, if(kind = 'row', types, null) as types,
  cast(null as timestamp) as event_time, cast(null as timestamp) as produced_at, nullif(m.`tokens`.`6`, '') as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position', order_position(array(m.`pos`)), 'arrival', arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('rowid', m.`tokens`.`R`, 'scn', m.`tokens`.`L`, 'log_position', m.`pos`, 'other_image', other_image,
    'key_columns', if(kind in ('row', 'ddl') and key is null, array_join(key_names, ','), null),
    'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
  origin, case when kind = 'ddl' then cast(null as string) end as statement, reason,
  found_in_message(reason, 'op_type', m.`op_type`, cast(null as string)) as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
