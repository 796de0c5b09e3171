-- wal2json_to_changelog: the messages of source wal2json, as rows of the changelog
-- format     wal2json: wal2json, format version 2, one change of a PostgreSQL table a message
-- reads      wal2json_messages: raw string, origin struct, arrival array
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`action` string, `schema` string, `table` string, `xid` string, `timestamp` string, `lsn` string, `nextlsn` string,
        `prefix` string, `content` string,
        `columns` array<struct<
          `name`:string,`value`:string,`type`:string>>,
        `identity` array<struct<
          `name`:string,`value`:string,`type`:string>>,
        `pk` array<struct<`name`:string>>, `_seal` string, `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '3')) as document
  from `wal2json_messages`
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, raw, message.document as m, message.reason as parse_error, message.misfits
  from (select *, `wal2json_message`(document, raw) as message from decoded)
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    coalesce(
      case when raw is null then 'control tombstone' end,
      case m.`action` when 'I' then 'row insert' when 'U' then 'row update' when 'D' then 'row delete' when 'T' then 'ddl truncate'
        when 'B' then 'control begin' when 'C' then 'control commit' when 'M' then 'control other' end) as verdict
  from parsed
),

-- The images, column -> value.  [names, name, value, prefix]
named_images as (
  select *,
    if(exists(m.`columns`, c -> c.`name` is null), null,
      map_from_entries(transform(m.`columns`, c -> struct(c.`name`, c.`value`)))) as `image_columns`,
    if(exists(m.`identity`, c -> c.`name` is null), null,
      map_from_entries(transform(m.`identity`, c -> struct(c.`name`, c.`value`)))) as `image_identity`
  from classified
),

-- The images of each row change.  [before, after]
message_images as (
  select *,
    case when verdict in ('row update', 'row delete') then `image_identity` end as found_before,
    case when verdict in ('row insert', 'row update') then `image_columns` end as found_after
  from named_images
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`action` is null, 'no-op', 'unknown-op')
      when verdict not like 'row %' then null
      when verdict like 'row %' and m.`columns` is not null and `image_columns` is null then 'schema-mismatch'
      when verdict like 'row %' and m.`identity` is not null and `image_identity` is null then 'schema-mismatch'
      when verdict = 'row insert' and array_contains(misfits, 'columns') then 'row-not-an-object'
      when verdict = 'row update' and (array_contains(misfits, 'columns') or array_contains(misfits, 'identity')) then 'row-not-an-object'
      when verdict = 'row delete' and array_contains(misfits, 'identity') then 'row-not-an-object'
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0, false) then 'no-row-image' end as reason,
    key_columns(m.`pk`.`name`, array()) as key_names,
    if(m.`columns` is null and m.`identity` is null, null, map_concat(
      coalesce(map_from_entries(transform(filter(m.`identity`, t -> t.`name` is not null), t -> struct(t.`name`, t.`type`))), map()),
      coalesce(map_from_entries(transform(filter(m.`columns`, t -> t.`name` is not null), t -> struct(t.`name`, t.`type`))), map()))) as
        types,
    `wal2json_readers`(types) as readers
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, readers, if(reason is null, null, raw) as raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    0 as row_index,
    case when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(reason is null, table_columns(found_before, types, array()), null) as sent_before,
    if(reason is null, table_columns(found_after, types, array()), null) as sent_after,
    case when reason is null and verdict = 'row insert' then other_image(`image_identity`, coalesce(found_before, found_after), array())
      when reason is null and verdict = 'row delete' then other_image(`image_columns`, coalesce(found_before, found_after), array())
        end as other_image
  from checked
),

-- The canonical text of the values whose text as sent may be another, and the images with it.  [types.table, values]
texts as (
  select *, `wal2json_texts`(sent_before, readers) as texts_before, `wal2json_texts`(sent_after, readers) as texts_after,
    with_texts(sent_before, texts_before) as read_before, with_texts(sent_after, texts_after) as read_after
  from exploded
),

-- Both images in canonical text.
images as (
  select *, if(size(sent_before) > 0, read_before, null) as before, read_after as after, map_keys(sent_before) as columns_before,
    concat(unread_columns(sent_before, readers, texts_before), unread_columns(sent_after, readers, texts_after)) as columns_as_sent,
    concat(`wal2json_ambiguous`(sent_before, readers, texts_before), `wal2json_ambiguous`(sent_after, readers, texts_after)) as
      ambiguous_times
  from texts
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
  kind, 'wal2json' as source, 'wal2json' as format, op, cast(null as string) as tenant, cast(null as string) as db_name,
  nullif(m.`schema`, '') as schema_name, nullif(m.`table`, '') as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after,
  case when kind <> 'row' then null when before is not null and verdict = 'row delete' then 'partial'
    else completeness(before, after, types, key_names) end as before_image,
  case when kind <> 'row' then null when after is not null and verdict = 'row update' then 'partial'
    else completeness(after, before, types, key_names) end as after_image,
  case when op = 'update' then changed_columns(before, after, types) end as changed,
  if(kind in ('row', 'ddl'), types, null) as types, instant_with_offset(m.`timestamp`) as event_time,
  cast(null as timestamp) as produced_at, nullif(m.`xid`, '') as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position', order_position(array(coalesce(number_of_lsn(m.`lsn`), number_of_lsn(m.`nextlsn`)))), 'arrival', arrival, 'row', row_index)
      as seq,
  cast(null as string) as pair_id,
  known_entries(map('log_position', coalesce(nullif(m.`lsn`, ''), nullif(m.`nextlsn`, '')), 'prefix', m.`prefix`, 'content', m.`content`,
    'other_image', other_image, 'key_columns', if(kind in ('row', 'ddl') and key is null, array_join(key_names, ','), null),
    'as_sent', names_joined(columns_as_sent), 'ambiguous_times', names_joined(ambiguous_times),
    'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
  origin, case when kind = 'ddl' then cast(null as string) end as statement, reason,
  found_in_message(reason, 'action', m.`action`, cast(null as string)) as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
