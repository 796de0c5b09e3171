-- wal2json_v1_to_changelog: the messages of source wal2json_v1, as rows of the changelog
-- format     wal2json_v1: wal2json, format version 1, one transaction of PostgreSQL a message
-- reads      wal2json_v1_messages: raw string, origin struct, arrival array
-- functions  Spark's own, and json_elements of runner/functions
-- zone       not declared: local times stay wall clock
with

-- The messages in each message, one a row.  [message.batch]
messages as (
  select origin, arrival, nth, element as raw
  from (select *, json_elements(if(is_valid_utf8(raw), raw, null), cast(array('change') as array<string>)) as elements from
    `wal2json_v1_messages`)
  lateral view outer posexplode(coalesce(elements, array(raw))) each as nth, element
),

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`change` struct<
          `kind` string, `schema` string, `table` string, `prefix` string, `content` string, `columnvalues` array<string>,
          `oldkeys` struct<
            `keyvalues` array<string>, `keynames` array<string>>,
          `columnnames` array<string>, `pk` struct<`pknames` array<string>>, `columntypes` array<string>>,
        `xid` string, `timestamp` string, `nextlsn` string, `_seal` string, `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '4')) as document
  from messages
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, nth, raw, message.document as m, message.reason as parse_error, message.misfits
  from (select *, `wal2json_v1_message`(document, raw) as message from decoded)
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    coalesce(
      case when raw is null then 'control tombstone' end,
      case m.`change`.`kind` when 'insert' then 'row insert' when 'update' then 'row update' when 'delete' then 'row delete'
        when 'truncate' then 'ddl truncate' when 'message' then 'control other' end,
      case when m.`change`.`kind` is null and m.`change` is null then 'control commit' end) as verdict
  from parsed
),

-- The images, column -> value.  [names, name, value, prefix]
named_images as (
  select *,
    if(size(m.`change`.`columnnames`) = size(m.`change`.`columnvalues`)
      and not exists(m.`change`.`columnnames`, n -> n is null), map_from_arrays(m.`change`.`columnnames`, m.`change`.`columnvalues`), null)
      as `image_change_columnvalues`,
    if(size(m.`change`.`oldkeys`.`keynames`) = size(m.`change`.`oldkeys`.`keyvalues`)
      and not exists(m.`change`.`oldkeys`.`keynames`, n -> n is null),
      map_from_arrays(m.`change`.`oldkeys`.`keynames`, m.`change`.`oldkeys`.`keyvalues`), null) as `image_change_oldkeys_keyvalues`
  from classified
),

-- The images of each row change.  [before, after]
message_images as (
  select *,
    case when verdict in ('row update', 'row delete') then `image_change_oldkeys_keyvalues` end as found_before,
    case when verdict in ('row insert', 'row update') then `image_change_columnvalues` end as found_after
  from named_images
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`change`.`kind` is null, 'no-op', 'unknown-op')
      when verdict not like 'row %' then null
      when verdict like 'row %' and m.`change`.`columnvalues` is not null and `image_change_columnvalues` is null then 'schema-mismatch'
      when verdict like 'row %' and m.`change`.`oldkeys`.`keyvalues` is not null and `image_change_oldkeys_keyvalues` is null
        then 'schema-mismatch'
      when verdict = 'row insert' and array_contains(misfits, 'change.columnvalues') then 'row-not-an-object'
      when verdict = 'row update' and
        (array_contains(misfits, 'change.columnvalues') or array_contains(misfits, 'change.oldkeys.keyvalues')) then 'row-not-an-object'
      when verdict = 'row delete' and array_contains(misfits, 'change.oldkeys.keyvalues') then 'row-not-an-object'
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0, false) then 'no-row-image' end as reason,
    key_columns(m.`change`.`pk`.`pknames`, array()) as key_names,
    map_concat(if(exists(m.`change`.`columnnames`, n -> n is null), null,
      if(size(m.`change`.`columnnames`) = size(m.`change`.`columntypes`),
      map_from_arrays(m.`change`.`columnnames`, m.`change`.`columntypes`), null))) as types,
    `wal2json_v1_readers`(types) as readers
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, readers, if(reason is null, null, raw) as raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    coalesce(nth, 0) as row_index,
    case when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(reason is null, table_columns(found_before, types, array()), null) as sent_before,
    if(reason is null, table_columns(found_after, types, array()), null) as sent_after,
    case when reason is null and verdict = 'row insert'
      then other_image(`image_change_oldkeys_keyvalues`, coalesce(found_before, found_after), array())
      when reason is null and verdict = 'row delete'
        then other_image(`image_change_columnvalues`, coalesce(found_before, found_after), array()) end as other_image
  from checked
),

-- The canonical text of the values whose text as sent may be another, and the images with it.  [types.table, values]
texts as (
  select *, `wal2json_v1_texts`(sent_before, readers) as texts_before, `wal2json_v1_texts`(sent_after, readers) as texts_after,
    with_texts(sent_before, texts_before) as read_before, with_texts(sent_after, texts_after) as read_after
  from exploded
),

-- Both images in canonical text.
images as (
  select *, if(size(sent_before) > 0, read_before, null) as before, read_after as after, map_keys(sent_before) as columns_before,
    concat(unread_columns(sent_before, readers, texts_before), unread_columns(sent_after, readers, texts_after)) as columns_as_sent,
    concat(`wal2json_v1_ambiguous`(sent_before, readers, texts_before), `wal2json_v1_ambiguous`(sent_after, readers, texts_after)) as
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
  kind, 'wal2json_v1' as source, 'wal2json_v1' as format, op, cast(null as string) as tenant, cast(null as string) as db_name,
  nullif(m.`change`.`schema`, '') as schema_name, nullif(m.`change`.`table`, '') as table_name, key,
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
    'position', order_position(array(number_of_lsn(m.`nextlsn`))), 'arrival', arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('log_position', m.`nextlsn`, 'prefix', m.`change`.`prefix`, 'content', m.`change`.`content`, 'other_image', other_image,
    'key_columns', if(kind in ('row', 'ddl') and key is null, array_join(key_names, ','), null),
    'as_sent', names_joined(columns_as_sent), 'ambiguous_times', names_joined(ambiguous_times),
    'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
  origin, case when kind = 'ddl' then cast(null as string) end as statement, reason,
  found_in_message(reason, 'change.kind', m.`change`.`kind`, cast(null as string)) as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
