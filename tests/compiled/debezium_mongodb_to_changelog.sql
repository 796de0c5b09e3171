-- debezium_mongodb_to_changelog: the messages of source debezium_mongodb, as rows of the changelog
-- format     debezium_mongodb: Debezium from MongoDB, whose documents are texts in extended JSON
-- reads      debezium_mongodb_messages: raw string, origin struct, arrival array
-- functions  Spark's own, and extended_document of runner/functions
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`payload` struct<
          `op` string,
          `source` struct<
            `db` string, `schema` string, `collection` string, `txnNumber` string, `ts_us` string, `ts_ms` string, `ord` string,
            `connector` string, `name` string, `version` string, `server_id` string>,
          `transaction` struct<`id` string>, `ts_us` string, `ts_ms` string, `id` string,
          `updateDescription` struct<
            `truncatedArrays` string, `updatedFields` string, `removedFields` array<string>>,
          `status` string, `after` string, `before` string, `aggregate_type` string>,
        `op` string,
        `source` struct<
          `db` string, `schema` string, `collection` string, `txnNumber` string, `ts_us` string, `ts_ms` string, `ord` string,
          `connector` string, `name` string, `version` string, `server_id` string>,
        `transaction` struct<`id` string>, `ts_us` string, `ts_ms` string, `id` string,
        `updateDescription` struct<
          `truncatedArrays` string, `updatedFields` string, `removedFields` array<string>>,
        `status` string, `after` string, `before` string, `aggregate_type` string, `_seal` string, `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '4')) as document
  from `debezium_mongodb_messages`
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, raw, message.document as m, message.reason as parse_error
  from (select *, `debezium_mongodb_message`(document, raw) as message from decoded)
),

-- The fields where paths start, with what came beside them.  [message.root, $key]
placed as (
  select * except (m, found, record_key),
    struct(found.*,
      coalesce(record_key.`payload`, struct(record_key.`id`)) as `$key`) as m
  from (select *,
      coalesce(m.`payload`, struct(m.`op`, m.`source`, m.`transaction`, m.`ts_us`, m.`ts_ms`, m.`id`, m.`updateDescription`, m.`status`,
        m.`after`, m.`before`, m.`aggregate_type`)) as found,
      from_json(origin.key, 'struct<`payload` struct<`id` string>, `id` string>',
        map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')) as
        record_key
    from parsed)
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    case when raw is null then 'control tombstone'
      when m.`op` = 'c' then 'row insert'
      when m.`op` = 'r' then 'row snapshot'
      when m.`op` = 'u' and m.`after` is not null then 'row update'
      when m.`op` = 'u' and not coalesce(m.`updateDescription`.`truncatedArrays` = '[]', false)
        and m.`updateDescription`.`truncatedArrays` is not null then 'dead_letter truncated-arrays'
      when m.`op` = 'u' then 'row update 2'
      when m.`op` = 'd' and m.`before` is not null then 'row delete'
      when m.`op` = 'd' then 'row delete 2'
      when m.`op` is null and m.`status` = 'BEGIN' then 'control begin'
      when m.`op` is null and m.`status` = 'END' then 'control commit'
      when m.`op` is null and m.`ts_ms` is not null and m.`source` is null then 'control heartbeat'
      when m.`op` is null and m.`aggregate_type` is not null then 'dead_letter notification' end as verdict
  from placed
),

-- Documents that came as texts in another language than JSON.  [text]
parsed_texts as (
  select *,
    extended_document(if(verdict in ('row insert', 'row snapshot', 'row update'), m.`after`, null)) as `extended_document_after`,
    extended_document(if(verdict in ('row insert', 'row snapshot', 'row update', 'row update 2', 'row delete', 'row delete 2'),
      concat('{"_id":', m.`$key`.`id`, '}'), null)) as `extended_document_$key_id`,
    extended_document(if(verdict in ('row update', 'row update 2', 'row delete'), m.`before`, null)) as `extended_document_before`,
    extended_document(if(verdict = 'row update 2',
      coalesce(m.`updateDescription`.`updatedFields`, if(size(m.`updateDescription`.`removedFields`) > 0, '{}', null)), null)) as
      `extended_document_updateDescription_updatedFields_patch`,
    extended_document(if(verdict = 'row delete 2', concat('{"_id":', m.`$key`.`id`, '}'), null)) as `extended_document_$key_id__id`
  from classified
),

-- The images of each row change.  [before, after]
message_images as (
  select *,
    case verdict when 'row update 2' then m.`updateDescription`.`removedFields` end as removed,
    case when verdict in ('row update', 'row update 2', 'row delete') then `extended_document_before`.values
      when verdict = 'row delete 2' then `extended_document_$key_id__id`.values end as found_before,
    case when verdict in ('row insert', 'row snapshot', 'row update') then `extended_document_after`.values
      when verdict = 'row update 2' then `extended_document_updateDescription_updatedFields_patch`.values end as found_after
  from parsed_texts
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    flatten(array_compact(array(
      array_intersect(`extended_document_$key_id`.as_sent, array('_id')),
      case when verdict in ('row update', 'row update 2', 'row delete') then `extended_document_before`.as_sent
      when verdict = 'row delete 2' then `extended_document_$key_id__id`.as_sent end,
      case when verdict in ('row insert', 'row snapshot', 'row update') then `extended_document_after`.as_sent
      when verdict = 'row update 2' then `extended_document_updateDescription_updatedFields_patch`.as_sent end))) as unfit_columns,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`op` is null, 'no-op', 'unknown-op')
      when verdict like 'dead\\_letter %' then substring_index(substring_index(verdict, ' ', 2), ' ', -1)
      when verdict not like 'row %' then null
      when verdict = 'row insert' and `extended_document_after`.reason is not null then `extended_document_after`.reason
      when verdict = 'row snapshot' and `extended_document_after`.reason is not null then `extended_document_after`.reason
      when verdict = 'row update' and `extended_document_after`.reason is not null then `extended_document_after`.reason
      when verdict = 'row update 2' and `extended_document_updateDescription_updatedFields_patch`.reason is not null
        then `extended_document_updateDescription_updatedFields_patch`.reason
      when verdict = 'row delete' and `extended_document_before`.reason is not null then `extended_document_before`.reason
      when verdict = 'row delete 2' and `extended_document_$key_id__id`.reason is not null then `extended_document_$key_id__id`.reason
      when not (verdict = 'row update 2') and not
        coalesce(size(if(verdict in ('row delete', 'row delete 2'), found_before, found_after)) > 0, false) then 'no-row-image'
      when found_after is null and verdict = 'row update 2' then 'no-row-image' end as reason,
    columns_of(`extended_document_$key_id`.values, null, array('_id')) as key_image,
    if(map_keys(`extended_document_$key_id`.values) = array('_id'), null, m.`$key`.`id`) as more_than_key,
    array('_id') as key_names,
    map_concat(coalesce(columns_of(`extended_document_$key_id`.types, null, array('_id')), map()),
      coalesce(case when verdict in ('row update', 'row update 2', 'row delete') then `extended_document_before`.types
      when verdict = 'row delete 2' then `extended_document_$key_id__id`.types end, map()),
        coalesce(case when verdict in ('row insert', 'row snapshot', 'row update') then `extended_document_after`.types
      when verdict = 'row update 2' then `extended_document_updateDescription_updatedFields_patch`.types end, map())) as types
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.
exploded as (
  select origin, arrival, m, verdict, reason, key_names, key_image, more_than_key, types, removed, unfit_columns,
    if(reason is null, null, raw) as raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    0 as row_index,
    case when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(reason is null, table_columns(found_before, null, array()), null) as sent_before,
    if(reason is null, table_columns(found_after, null, array()), null) as sent_after
  from checked
),

-- Both images in canonical text.
images as (
  select *, if(size(sent_before) > 0, sent_before, null) as before, sent_after as after, map_keys(sent_before) as columns_before,
    if(kind = 'row', unfit_columns, array()) as columns_as_sent
  from exploded
),

-- The key columns, looked up in the images; null if one of them is missing.  [key]
keyed as (
  select *,
    case when kind = 'row' then coalesce(columns_of(after, before, key_names), key_image) end as key,
    if(op = 'update' and arrays_overlap(key_names, columns_before), columns_of(before, after, key_names), null) as key_before
  from images
)

-- The columns of the contract, in its order.
select
  kind, 'debezium_mongodb' as source, 'debezium_mongodb' as format, op, cast(null as string) as tenant,
  nullif(m.`source`.`db`, '') as db_name, nullif(m.`source`.`schema`, '') as schema_name,
  nullif(m.`source`.`collection`, '') as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after,
  case when kind <> 'row' then null when before is not null and verdict = 'row delete 2' then 'key'
    else completeness(before, after, types, key_names) end as before_image,
  case when kind <> 'row' then null when after is not null and verdict = 'row update 2' then 'patch'
    else completeness(after, before, types, key_names) end as after_image,
  case when kind = 'row' and verdict = 'row update 2' then sort_array(array_union(map_keys(after), coalesce(removed, array())))
      when op = 'update' then changed_columns(before, after, types) end as changed,
  if(kind = 'row', types, null) as types,
  case when verdict in ('control begin', 'control commit', 'control heartbeat')
    then if(m.`ts_ms` = '0', null, instant_of_milliseconds(m.`ts_ms`))
    else coalesce(if(m.`source`.`ts_us` = '0', null, instant_of_microseconds(m.`source`.`ts_us`)),
    if(m.`source`.`ts_ms` = '0', null, instant_of_milliseconds(m.`source`.`ts_ms`))) end as event_time,
  coalesce(if(m.`ts_us` = '0', null, instant_of_microseconds(m.`ts_us`)), if(m.`ts_ms` = '0', null, instant_of_milliseconds(m.`ts_ms`))) as
    produced_at,
  case when verdict in ('control begin', 'control commit') then nullif(m.`id`, '')
    else coalesce(nullif(m.`transaction`.`id`, ''), nullif(m.`source`.`txnNumber`, '')) end as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position', order_position(array(m.`source`.`ts_ms`, m.`source`.`ord`)), 'arrival', arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('connector', m.`source`.`connector`, 'server', m.`source`.`name`, 'protocol_version', m.`source`.`version`,
    'log', case when lower(m.`source`.`connector`) in ('mysql', 'mariadb') then nullif(nullif(m.`source`.`server_id`, '0'), '')
      else cast(null as string) end,
    'where', if(kind = 'row', more_than_key, null),
    'key_columns', if(kind = 'row' and key is null, array_join(key_names, ','), null), 'as_sent', names_joined(columns_as_sent),
    'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
  origin, case when kind = 'ddl' then cast(null as string) end as statement, reason,
  case reason
    when 'truncated-arrays' then
      concat('updateDescription.truncatedArrays: ', coalesce(concat('"', m.`updateDescription`.`truncatedArrays`, '"'), 'missing'), ', ',
      'updateDescription.updatedFields: ', coalesce(concat('"', m.`updateDescription`.`updatedFields`, '"'), 'missing'))
    when 'notification' then concat('aggregate_type: ', coalesce(concat('"', m.`aggregate_type`, '"'), 'missing'))
    else found_in_message(reason, 'op', m.`op`, cast(null as string)) end as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
