-- oceanbase_avro_to_changelog: the messages of source oceanbase_avro, as rows of the changelog
-- format     oceanbase_avro: OceanBase data subscription, Avro
-- reads      oceanbase_avro_messages: raw binary, own_schema string, damage string, origin struct, arrival array
-- functions  Spark's own, and avro_oceanbase_avro_dda1fcf4 of runner/functions
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names, of the record in the bytes.  [message.schema, records]
decoded as (
  select *, avro_oceanbase_avro_dda1fcf4(raw, own_schema) as record
  from `oceanbase_avro_messages`
),

-- The one record of each message, or why there is not one.
parsed as (
  select * except (record, damage), record.fields as m, record.images as sent_images,
    case
      when damage is not null then 'bad-avro'
      when octet_length(raw) = 0 then 'empty'
      else record.reason
    end as parse_error,
    coalesce(damage, record.detail) as read_detail
  from decoded
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    coalesce(
      case when raw is null then 'control tombstone'
      when not coalesce(m.`total` in ('-1', '0', '1'), false) then 'dead_letter sharded-message' end,
      case m.`operation` when 'INSERT' then 'row insert' when 'UPDATE' then 'row update' when 'DELETE' then 'row delete'
        when 'DDL' then 'ddl by_statement' when 'BEGIN' then 'control begin' when 'COMMIT' then 'control commit'
        when 'HEARTBEAT' then 'control heartbeat' end) as verdict
  from parsed
),

-- The images, column -> value.  [names]
named_images as (
  select *,
    case
      when size(m.`fields`.`name`) <> size(sent_images.`afterImages`.texts) then null
      else map_from_arrays(m.`fields`.`name`, sent_images.`afterImages`.texts) end as `image_afterImages`,
    case
      when size(m.`fields`.`name`) <> size(sent_images.`beforeImages`.texts) then null
      else map_from_arrays(m.`fields`.`name`, sent_images.`beforeImages`.texts) end as `image_beforeImages`
  from classified
),

-- The images of each row change.  [before, after]
message_images as (
  select *,
    case when verdict in ('row update', 'row delete') then `image_beforeImages` end as found_before,
    case when verdict in ('row insert', 'row update') then `image_afterImages` end as found_after
  from named_images
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    coalesce(read_detail,
      if(sent_images.`afterImages`.texts is not null
      and `image_afterImages` is null,
      concat('afterImages: ', size(sent_images.`afterImages`.texts), ' values for ', coalesce(size(m.`fields`.`name`), 0), ' columns'),
      null),
      if(sent_images.`beforeImages`.texts is not null
      and `image_beforeImages` is null,
      concat('beforeImages: ', size(sent_images.`beforeImages`.texts), ' values for ', coalesce(size(m.`fields`.`name`), 0), ' columns'),
      null), if(exists(m.`pkIndexes`, i -> i < 0 or i >= coalesce(size(m.`fields`.`name`), 0)),
      concat('pkIndexes: ', array_join(m.`pkIndexes`, ','), ' of ', coalesce(size(m.`fields`.`name`), 0), ' columns'), null)) as
      error_detail,
    array_compact(flatten(array(
      if(`image_afterImages` is null, array(),
        coalesce(transform(sent_images.`afterImages`.as_sent, i -> get(m.`fields`.`name`, i)), array())),
      if(`image_beforeImages` is null, array(),
        coalesce(transform(sent_images.`beforeImages`.as_sent, i -> get(m.`fields`.`name`, i)), array()))))) as unfit_columns,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`operation` is null, 'no-op', 'unknown-op')
      when verdict like 'dead\\_letter %' then substring_index(substring_index(verdict, ' ', 2), ' ', -1)
      when verdict not like 'row %' then null
      when sent_images.`afterImages`.texts is not null and `image_afterImages` is null then 'schema-mismatch'
      when sent_images.`beforeImages`.texts is not null and `image_beforeImages` is null then 'schema-mismatch'
      when exists(m.`pkIndexes`, i -> i < 0 or i >= coalesce(size(m.`fields`.`name`), 0)) then 'schema-mismatch'
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0, false)
        then if(nullif(m.`sql`, '') is not null, 'statement-without-rows', 'no-row-image') end as reason,
    transform(m.`pkIndexes`, i -> get(m.`fields`.`name`, try_cast(i as int))) as key_names,
    if(size(m.`fields`.`name`) = size(m.`fields`.`dataTypeNumber`), map_from_arrays(m.`fields`.`name`, m.`fields`.`dataTypeNumber`), null)
      as types
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, error_detail, own_schema, unfit_columns,
    if(reason is null, null, raw) as raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    0 as row_index,
    case when verdict like '% by\\_statement%' then op_of_statement(m.`sql`)
      when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(reason is null, found_before, null) as sent_before, if(reason is null, found_after, null) as sent_after,
    case when reason is null and verdict = 'row insert' then other_image(`image_beforeImages`, coalesce(found_before, found_after), array())
      when reason is null and verdict = 'row delete' then other_image(`image_afterImages`, coalesce(found_before, found_after), array())
        end as other_image
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
    case when kind = 'row' then columns_of(after, before, key_names) end as key,
    if(op = 'update' and arrays_overlap(key_names, columns_before), columns_of(before, after, key_names), null) as key_before
  from images
)

-- The columns of the contract, in its order.
select
  kind, 'oceanbase_avro' as source, 'oceanbase_avro' as format, op, cast(null as string) as tenant,
  case when lower(m.`source`.`sourceType`) = 'ob_oracle' then cast(null as string) else nullif(m.`schemaName`, '') end as db_name,
  case when lower(m.`source`.`sourceType`) = 'ob_oracle' then nullif(m.`schemaName`, '') else cast(null as string) end as schema_name,
  nullif(m.`tableName`, '') as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after, if(kind = 'row', completeness(before, after, types, key_names), null) as before_image,
  if(kind = 'row', completeness(after, before, types, key_names), null) as after_image,
  case when op = 'update' then changed_columns(before, after, types) end as changed,
  if(kind in ('row', 'ddl'), types, null) as types, if(m.`timestamp` = '0', null, instant_of_seconds(m.`timestamp`)) as event_time,
  cast(null as timestamp) as produced_at, nullif(m.`xid`, '') as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position', order_position(array(m.`id`)), 'arrival', arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('log_position', m.`position`, 'transaction_position', m.`txind`, 'unique_keys', m.`ukIndexes`,
    'db_type', m.`source`.`sourceType`, 'db_version', m.`source`.`version`, 'protocol_version', m.`version`, 'tags', m.`tags`.`*`,
    'other_image', other_image, 'key_columns', if(kind in ('row', 'ddl') and key is null, array_join(key_names, ','), null),
    'as_sent', names_joined(columns_as_sent), 'raw_encoding', if(kind = 'dead_letter', 'base64', null),
    'own_schema', if(raw is null, null, own_schema))) as meta,
  origin, case when kind = 'ddl' then nullif(m.`sql`, '') end as statement, reason,
  coalesce(if(kind = 'dead_letter', error_detail, null), case reason
    when 'sharded-message' then concat('total: ', coalesce(concat('"', m.`total`, '"'), 'missing'))
    else found_in_message(reason, 'operation', m.`operation`, m.`sql`) end) as detail,
  base64(raw) as raw
from keyed
