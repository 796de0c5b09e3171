-- aws_dms_to_changelog: the messages of source aws_dms, as rows of the changelog
-- format     aws_dms: AWS Database Migration Service to Kafka or Kinesis, as JSON
-- reads      aws_dms_messages: raw string, origin struct, arrival array
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`metadata` struct<
          `operation` string, `schema-name` string, `table-name` string, `transaction-id` string, `commit-timestamp` string,
          `timestamp` string, `stream-position` string, `transaction-record-id` string, `record-type` string>,
        `data` map<string,string>, `before-image` map<string,string>, `_seal` string, `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '2')) as document
  from `aws_dms_messages`
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, raw, message.document as m, message.reason as parse_error, message.misfits
  from (select *, `aws_dms_message`(document, raw) as message from decoded)
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    case when raw is null then 'control tombstone'
      when m.`metadata`.`operation` in ('load', 'read') then 'row snapshot'
      when m.`metadata`.`operation` in ('insert', 'create') then 'row insert'
      when m.`metadata`.`operation` = 'update' and m.`before-image` is not null then 'row update'
      when m.`metadata`.`operation` = 'update' then 'row update 2'
      when m.`metadata`.`operation` = 'delete' then 'row delete'
      when m.`metadata`.`operation` = 'create-table' then 'ddl create'
      when m.`metadata`.`operation` = 'drop-table' then 'ddl drop'
      when m.`metadata`.`operation` = 'rename-table' then 'ddl rename'
      when m.`metadata`.`operation` in ('truncate-table', 'TruncateTable') then 'ddl truncate'
      when m.`metadata`.`operation` = 'DropTable' then 'ddl drop'
      when m.`metadata`.`operation` in ('change-columns', 'add-column', 'drop-column', 'rename-column', 'column-type-change')
        then 'ddl alter'
      when m.`metadata`.`operation` is not null and m.`metadata`.`record-type` = 'control' then 'control other' end as verdict
  from parsed
),

-- The images, column -> value.  [names, name, value, prefix]
named_images as (
  select *,
    map_filter(m.`data`, (c, v) -> not startswith(c, 'BI_')) as `image_data`,
    m.`before-image` as `image_before-image`,
    transform_keys(map_filter(m.`data`, (c, v) -> startswith(c, 'BI_')), (c, v) -> substr(c, 4)) as `image_data BI_`
  from classified
),

-- The images of each row change.  [before, after]
message_images as (
  select *,
    case when verdict = 'row update' then `image_before-image`
      when verdict = 'row update 2' then `image_data BI_`
      when verdict = 'row delete' then `image_data` end as found_before,
    case when verdict in ('row snapshot', 'row insert', 'row update', 'row update 2') then `image_data` end as found_after
  from named_images
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`metadata`.`operation` is null, 'no-op', 'unknown-op')
      when verdict not like 'row %' then null
      when verdict in ('row snapshot', 'row insert', 'row delete') and array_contains(misfits, 'data') then 'row-not-an-object'
      when verdict = 'row update' and (array_contains(misfits, 'data') or array_contains(misfits, 'before-image')) then 'row-not-an-object'
      when verdict = 'row update 2' and (array_contains(misfits, 'data') or array_contains(misfits, 'data')) then 'row-not-an-object'
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0, false) then 'no-row-image' end as reason,
    cast(null as array<string>) as key_names, cast(null as map<string,string>) as types
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
    case when reason is null and verdict in ('row snapshot', 'row insert', 'row delete')
      then other_image(`image_before-image`, coalesce(found_before, found_after), array()) end as other_image
  from checked
),

-- Both images in canonical text.
images as (
  select *, if(size(sent_before) > 0, sent_before, null) as before,
    if(verdict in ('row snapshot', 'row insert', 'row update', 'row update 2') and sent_before is not null,
      map_concat(transform_values(sent_before, (c, v) -> cast(null as string)), sent_after), sent_after) as after,
    map_keys(sent_before) as columns_before
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
  kind, 'aws_dms' as source, 'aws_dms' as format, op, cast(null as string) as tenant, cast(null as string) as db_name,
  nullif(m.`metadata`.`schema-name`, '') as schema_name, nullif(m.`metadata`.`table-name`, '') as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after,
  case when kind <> 'row' then null when before is not null and verdict = 'row delete' then 'partial'
    else completeness(before, after, types, key_names) end as before_image,
  if(kind = 'row', completeness(after, before, types, key_names), null) as after_image,
  case when op = 'update' then changed_columns(before, after, types) end as changed, if(kind = 'row', types, null) as types,
  instant_with_offset(m.`metadata`.`commit-timestamp`) as event_time, instant_with_offset(m.`metadata`.`timestamp`) as produced_at,
  nullif(m.`metadata`.`transaction-id`, '') as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position', cast(array() as array<decimal(38,0)>), 'arrival', arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('log_position', m.`metadata`.`stream-position`, 'transaction_position', m.`metadata`.`transaction-record-id`,
    'record_type', m.`metadata`.`record-type`, 'other_image', other_image, 'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as
      meta,
  origin, case when kind = 'ddl' then cast(null as string) end as statement, reason,
  found_in_message(reason, 'metadata.operation', m.`metadata`.`operation`, cast(null as string)) as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
