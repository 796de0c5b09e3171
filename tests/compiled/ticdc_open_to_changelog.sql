-- ticdc_open_to_changelog: the messages of source ticdc_open, as rows of the changelog
-- format     ticdc_open: TiCDC to Kafka, Open Protocol
-- reads      ticdc_open_messages: raw string, origin struct, arrival array
-- functions  Spark's own, and framed_events, escaped_bytes of runner/functions
-- zone       not declared: local times stay wall clock
with

-- The events in each message, one a row: each is a frame of the key and one of the value.  [message.frames]
messages as (
  select origin, arrival, nth, event.text as raw, event.damage
  from (select *, framed_events(cast(raw as binary), origin.key, '0000000000000001', '', 8) as events from `ticdc_open_messages`)
  lateral view posexplode(events) each as nth, event
),

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`key` struct<
          `t` string, `scm` string, `tbl` string, `ts` string, `ccl` string, `ohk` string>,
        `value` struct<
          `q` string, `t` string,
          `d` map<string,struct<
            `v`:string,`h`:string,`t`:string,`f`:string>>,
          `p` map<string,struct<`v`:string>>,
          `u` map<string,struct<
            `v`:string,`h`:string,`t`:string,`f`:string>>>,
        `_seal` string, `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '4')) as document
  from messages
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, nth, raw, message.document as m, damage,
    if(damage is not null, 'bad-frames', message.reason) as parse_error,
    message.misfits
  from (select *, `ticdc_open_message`(document, raw) as message from decoded)
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    case when raw is null then 'control tombstone'
      when m.`key`.`t` = '1' and m.`key`.`ohk` = 'true' and m.`value`.`d` is not null then 'row delete'
      when m.`key`.`t` = '1' and m.`key`.`ohk` = 'true' and m.`value`.`p` is not null then 'row update'
      when m.`key`.`t` = '1' and m.`key`.`ohk` = 'true' then 'row insert'
      when m.`key`.`t` = '1' and m.`key`.`ccl` is not null and m.`value`.`d` is not null then 'row delete'
      when m.`key`.`t` = '1' and m.`key`.`ccl` is not null and m.`value`.`p` is not null then 'row update'
      when m.`key`.`t` = '1' and m.`key`.`ccl` is not null then 'row insert'
      when m.`key`.`t` = '1' and m.`value`.`d` is not null then 'row delete 2'
      when m.`key`.`t` = '1' and m.`value`.`p` is not null then 'row update 2'
      when m.`key`.`t` = '1' then 'row insert 2'
      when m.`key`.`t` = '2' then 'ddl by_statement'
      when m.`key`.`t` = '3' then 'control watermark' end as verdict
  from parsed
),

-- The images, column -> value.  [names, name, value, prefix]
named_images as (
  select *,
    if(exists(map_values(m.`value`.`d`), c -> c is null), null, transform_values(m.`value`.`d`, (n, c) -> c.`v`)) as `image_value_d`,
    if(exists(map_values(m.`value`.`p`), c -> c is null), null, transform_values(m.`value`.`p`, (n, c) -> c.`v`)) as `image_value_p`,
    if(exists(map_values(m.`value`.`u`), c -> c is null), null, transform_values(m.`value`.`u`, (n, c) -> c.`v`)) as `image_value_u`
  from classified
),

-- The images of each row change.  [before, after]
message_images as (
  select *,
    case when verdict in ('row delete', 'row delete 2') then `image_value_d`
      when verdict in ('row update', 'row update 2') then `image_value_p` end as found_before,
    case when verdict in ('row update', 'row insert', 'row update 2', 'row insert 2') then `image_value_u` end as found_after
  from named_images
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`key`.`t` is null, 'no-op', 'unknown-op')
      when verdict not like 'row %' then null
      when verdict like 'row %' and m.`value`.`d` is not null and `image_value_d` is null then 'schema-mismatch'
      when verdict like 'row %' and m.`value`.`p` is not null and `image_value_p` is null then 'schema-mismatch'
      when verdict like 'row %' and m.`value`.`u` is not null and `image_value_u` is null then 'schema-mismatch'
      when verdict in ('row delete', 'row delete 2') and array_contains(misfits, 'value.d') then 'row-not-an-object'
      when verdict in ('row update', 'row update 2') and (array_contains(misfits, 'value.u') or array_contains(misfits, 'value.p'))
        then 'row-not-an-object'
      when verdict in ('row insert', 'row insert 2') and array_contains(misfits, 'value.u') then 'row-not-an-object'
      when not coalesce(size(if(verdict in ('row delete', 'row delete 2'), found_before, found_after)) > 0, false)
        then if(nullif(m.`value`.`q`, '') is not null, 'statement-without-rows', 'no-row-image') end as reason,
    coalesce(nullif(array_except(map_keys(map_filter(m.`value`.`u`, (n, c) -> c.`h` = 'true')), array()), cast(array() as array<string>)),
      array_except(map_keys(map_filter(m.`value`.`d`, (n, c) -> c.`h` = 'true')), array())) as key_names,
    map_concat(coalesce(transform_values(m.`value`.`u`, (c, t) ->
      concat(t.`t`, if(getbit(try_cast(t.`f` as bigint), 0) = 1, ' binary', ''),
      if(getbit(try_cast(t.`f` as bigint), 7) = 1, ' unsigned', ''))),
      transform_values(m.`value`.`d`, (c, t) ->
      concat(t.`t`, if(getbit(try_cast(t.`f` as bigint), 0) = 1, ' binary', ''),
      if(getbit(try_cast(t.`f` as bigint), 7) = 1, ' unsigned', ''))))) as types,
    `ticdc_open_readers`(types) as readers
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, readers, damage, if(reason is null, null, raw) as raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    coalesce(nth, 0) as row_index,
    case when verdict = 'ddl by_statement' then case when lower(m.`value`.`t`) in ('1', '3', '21') then 'create'
      when lower(m.`value`.`t`) in ('2', '4', '24') then 'drop'
      when lower(m.`value`.`t`) in ('5', '6', '12') then 'alter'
      when lower(m.`value`.`t`) in ('7', '8') then 'index'
      when lower(m.`value`.`t`) = '11' then 'truncate'
      when lower(m.`value`.`t`) = '14' then 'rename' else op_of_statement(m.`value`.`q`) end
      when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(reason is null, if(verdict in ('row delete', 'row update'), key_part(found_before, types, array(), null, key_names),
      table_columns(found_before, types, array())), null) as sent_before,
    if(reason is null, if(verdict in ('row update', 'row insert'), key_part(found_after, types, array(), null, key_names),
      table_columns(found_after, types, array())), null) as sent_after,
    case when reason is null and verdict in ('row delete', 'row insert', 'row delete 2', 'row insert 2')
      then other_image(`image_value_p`, coalesce(found_before, found_after), array())
      when reason is null and verdict in ('row delete', 'row delete 2')
        then other_image(`image_value_u`, coalesce(found_before, found_after), array())
      when reason is null and verdict in ('row insert', 'row insert 2')
        then other_image(`image_value_d`, coalesce(found_before, found_after), array()) end as other_image
  from checked
),

-- The values that only a function over a whole image can read.  [values]
python_read as (
  select *,
    escaped_bytes(if(
      exists(map_values(readers), r -> r = 'escaped_bytes'),
      map_filter(sent_before, (c, v) -> coalesce(readers[c] = 'escaped_bytes', false)), null)) as escaped_bytes_before,
    escaped_bytes(if(
      exists(map_values(readers), r -> r = 'escaped_bytes'),
      map_filter(sent_after, (c, v) -> coalesce(readers[c] = 'escaped_bytes', false)), null)) as escaped_bytes_after
  from exploded
),

-- The canonical text of the values whose text as sent may be another, and the images with it.  [types.table, values]
texts as (
  select *,
    `ticdc_open_texts`(sent_before, readers, escaped_bytes_before) as texts_before,
    `ticdc_open_texts`(sent_after, readers, escaped_bytes_after) as texts_after,
    with_texts(sent_before, texts_before) as read_before, with_texts(sent_after, texts_after) as read_after
  from python_read
),

-- Both images in canonical text; one of only some columns is laid over the other.  [before.over, after.over]
images as (
  select *,
    if(verdict = 'row update 2', map_concat(read_after, read_before), read_before) as before,
    read_after as after, map_keys(sent_before) as columns_before,
    concat(unread_columns(sent_before, readers, texts_before), unread_columns(sent_after, readers, texts_after)) as columns_as_sent
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
  kind, 'ticdc_open' as source, 'ticdc_open' as format, op, cast(null as string) as tenant, nullif(m.`key`.`scm`, '') as db_name,
  cast(null as string) as schema_name, nullif(m.`key`.`tbl`, '') as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after,
  case when kind <> 'row' then null when before is not null and verdict in ('row delete', 'row update')
    and not coalesce(size(array_except(map_keys(before), key_names)) > 0, false) then 'key' when before is not null
    and verdict = 'row delete 2' then 'partial' else completeness(before, after, types, key_names) end as before_image,
  case when kind <> 'row' then null when after is not null and verdict in ('row update', 'row insert')
    and not coalesce(size(array_except(map_keys(after), key_names)) > 0, false) then 'key'
    else completeness(after, before, types, key_names) end as after_image,
  case when op = 'update' then changed_among(columns_before, before, after) end as changed,
  if(kind in ('row', 'ddl'), types, null) as types,
  instant_of_milliseconds(cast(shiftright(try_cast(m.`key`.`ts` as bigint), 18) as string)) as event_time,
  cast(null as timestamp) as produced_at,
  case when lower(m.`key`.`t`) = '3' then cast(null as string) else nullif(m.`key`.`ts`, '') end as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position', order_position(array(m.`key`.`ts`)), 'arrival', arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('checkpoint', case when lower(m.`key`.`t`) = '3' then nullif(m.`key`.`ts`, '') else cast(null as string) end,
    'payload_location', m.`key`.`ccl`, 'other_image', other_image,
    'key_columns', if(kind in ('row', 'ddl') and key is null, array_join(key_names, ','), null),
    'as_sent', names_joined(columns_as_sent), 'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
  origin, case when kind = 'ddl' then nullif(m.`value`.`q`, '') end as statement, reason,
  coalesce(damage, found_in_message(reason, 'key.t', m.`key`.`t`, m.`value`.`q`)) as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
