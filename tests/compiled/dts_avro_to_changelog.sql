-- dts_avro_to_changelog: the messages of source dts_avro, as rows of the changelog
-- format     dts_avro: Alibaba DTS change tracking, Avro
-- reads      dts_avro_messages: raw binary, own_schema string, damage string, origin struct, arrival array
-- functions  Spark's own, and avro_dts_avro_15851573 of runner/functions
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names, of the record in the bytes.  [message.schema, records]
decoded as (
  select *, avro_dts_avro_15851573(raw, own_schema) as record
  from `dts_avro_messages`
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
      case when raw is null then 'control tombstone' end,
      case m.`operation` when 'INSERT' then 'row insert' when 'UPDATE' then 'row update' when 'DELETE' then 'row delete'
        when 'INIT' then 'row snapshot' when 'DDL' then 'ddl by_statement' when 'BEGIN' then 'control begin'
        when 'COMMIT' then 'control commit' when 'ROLLBACK' then 'control rollback' when 'ABORT' then 'control rollback'
        when 'HEARTBEAT' then 'control heartbeat' when 'CHECKPOINT' then 'control watermark' end,
      case when m.`operation` is not null then 'control other' end) as verdict
  from parsed
),

-- The images, column -> value.  [names]
named_images as (
  select *,
    case
      when size(m.`fields`.`name`) <> size(sent_images.`afterImages`.texts) then null
      when size(sent_images.`afterImages`.missing) > 0 then map_from_arrays(
        filter(m.`fields`.`name`, (c, i) -> not get(sent_images.`afterImages`.missing, i)),
          filter(sent_images.`afterImages`.texts, (v, i) -> not get(sent_images.`afterImages`.missing, i)))
      else map_from_arrays(m.`fields`.`name`, sent_images.`afterImages`.texts) end as `image_afterImages`,
    case
      when size(m.`fields`.`name`) <> size(sent_images.`beforeImages`.texts) then null
      when size(sent_images.`beforeImages`.missing) > 0 then map_from_arrays(
        filter(m.`fields`.`name`, (c, i) -> not get(sent_images.`beforeImages`.missing, i)),
          filter(sent_images.`beforeImages`.texts, (v, i) -> not get(sent_images.`beforeImages`.missing, i)))
      else map_from_arrays(m.`fields`.`name`, sent_images.`beforeImages`.texts) end as `image_beforeImages`
  from classified
),

-- The images of each row change.  [before, after]
message_images as (
  select *,
    case when verdict in ('row update', 'row delete') then `image_beforeImages` end as found_before,
    case when verdict in ('row insert', 'row update', 'row snapshot') then `image_afterImages` end as found_after
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
      null)) as error_detail,
    array_compact(flatten(array(
      if(`image_afterImages` is null, array(),
        coalesce(transform(sent_images.`afterImages`.as_sent, i -> get(m.`fields`.`name`, i)), array())),
      if(`image_beforeImages` is null, array(),
        coalesce(transform(sent_images.`beforeImages`.as_sent, i -> get(m.`fields`.`name`, i)), array()))))) as unfit_columns,
    array_compact(flatten(array(
      if(`image_afterImages` is null, array(),
        coalesce(transform(sent_images.`afterImages`.ambiguous, i -> get(m.`fields`.`name`, i)), array())),
      if(`image_beforeImages` is null, array(),
        coalesce(transform(sent_images.`beforeImages`.ambiguous, i -> get(m.`fields`.`name`, i)), array()))))) as ambiguous_columns,
    array_distinct(flatten(array(
      coalesce(filter(m.`fields`.`name`, (c, i) -> get(sent_images.`afterImages`.missing, i)), array()),
      coalesce(filter(m.`fields`.`name`, (c, i) -> get(sent_images.`beforeImages`.missing, i)), array())))) as missing_columns,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`operation` is null, 'no-op', 'unknown-op')
      when verdict not like 'row %' then null
      when sent_images.`afterImages`.texts is not null and `image_afterImages` is null then 'schema-mismatch'
      when sent_images.`beforeImages`.texts is not null and `image_beforeImages` is null then 'schema-mismatch'
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0, false)
        then if(nullif(m.`afterImages`, '') is not null, 'statement-without-rows', 'no-row-image') end as reason,
    key_columns(coalesce(from_json(m.`tags`.`pk_uk_info`, 'struct<`PRIMARY`:array<string>>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen',
      '2147483647')).`PRIMARY`,
      listed_names(null,
      from_json(m.`tags`.`pk_uk_info`, 'struct<`PRIMARY`:string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen',
      '2147483647')).`PRIMARY`,
      from_json(m.`tags`.`pk_uk_info`, 'struct<`PRIMARY`:boolean>',
        map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen',
        '2147483647')).`PRIMARY` is not null
        or from_json(m.`tags`.`pk_uk_info`, 'struct<`PRIMARY`:double>',
        map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen',
        '2147483647')).`PRIMARY` is not null)), array()) as key_names,
    if(size(m.`fields`.`name`) = size(m.`fields`.`dataTypeNumber`), map_from_arrays(m.`fields`.`name`, m.`fields`.`dataTypeNumber`), null)
      as types
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, error_detail, own_schema, unfit_columns, ambiguous_columns,
    if(reason is null, null, raw) as raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    0 as row_index,
    case when verdict like '% by\\_statement%' then op_of_statement(m.`afterImages`)
      when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(reason is null, found_before, null) as sent_before, if(reason is null, found_after, null) as sent_after,
    if(size(missing_columns) > 0, map_concat(map_from_arrays(missing_columns, missing_columns), coalesce(types, map())), types) as
      named_columns,
    case when reason is null and verdict in ('row insert', 'row snapshot')
      then other_image(`image_beforeImages`, coalesce(found_before, found_after), array())
      when reason is null and verdict = 'row delete' then other_image(`image_afterImages`, coalesce(found_before, found_after), array())
        end as other_image
  from checked
),

-- Both images in canonical text.
images as (
  select *, if(size(sent_before) > 0, sent_before, null) as before, sent_after as after, map_keys(sent_before) as columns_before,
    if(kind = 'row', unfit_columns, array()) as columns_as_sent,
    concat(if(kind = 'row', ambiguous_columns, array())) as ambiguous_times
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
  kind, 'dts_avro' as source, 'dts_avro' as format, op, cast(null as string) as tenant,
  case when lower(m.`source`.`sourceType`) in ('oracle', 'db2')
    then nullif(replace(regexp_extract(m.`objectName`, '^(?s)(.*?)\\..*?\\..*$', 1), '\\u002E', '.'), '')
    else nullif(replace(regexp_extract(m.`objectName`, '^(?s)(.*?)(?:\\..*)?$', 1), '\\u002E', '.'), '') end as db_name,
  case when lower(m.`source`.`sourceType`) in ('oracle', 'db2')
    then
    coalesce(nullif(replace(regexp_extract(m.`objectName`, '^(?s).*?\\.(.*?)\\..*$', 1), '\\u002E', '.'), ''),
    nullif(replace(regexp_extract(m.`objectName`, '^(?s)(.*?)(?:\\..*)?$', 1), '\\u002E', '.'), ''))
    else nullif(replace(regexp_extract(m.`objectName`, '^(?s).*?\\.(.*?)\\..*$', 1), '\\u002E', '.'), '') end as schema_name,
  nullif(replace(regexp_extract(m.`objectName`, '^(?s).*?\\.(?:.*?\\.)?(.*)$', 1), '\\u002E', '.'), '') as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after, if(kind = 'row', completeness(before, after, named_columns, key_names), null) as before_image,
  if(kind = 'row', completeness(after, before, named_columns, key_names), null) as after_image,
  case when op = 'update' then changed_columns(before, after, named_columns) end as changed,
  if(kind in ('row', 'ddl'), types, null) as types,
  if(m.`sourceTimestamp` = '0', null, instant_of_seconds(m.`sourceTimestamp`)) as event_time, cast(null as timestamp) as produced_at,
  nullif(m.`sourceTxid`, '') as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position', cast(array() as array<decimal(38,0)>), 'arrival', arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('message_id', m.`id`, 'log_position', m.`sourcePosition`, 'checkpoint', m.`safeSourcePosition`,
    'unique_keys', m.`tags`.`pk_uk_info`, 'db_type', m.`source`.`sourceType`, 'db_version', m.`source`.`version`,
    'protocol_version', m.`version`, 'tags', m.`tags`.`*`, 'other_image', other_image,
    'key_columns', if(kind in ('row', 'ddl') and key is null, array_join(key_names, ','), null),
    'as_sent', names_joined(columns_as_sent), 'ambiguous_times', names_joined(ambiguous_times),
    'raw_encoding', if(kind = 'dead_letter', 'base64', null), 'own_schema', if(raw is null, null, own_schema))) as meta,
  origin, case when kind = 'ddl' then nullif(m.`afterImages`, '') end as statement, reason,
  coalesce(if(kind = 'dead_letter', error_detail, null), found_in_message(reason, 'operation', m.`operation`, m.`afterImages`)) as detail,
  base64(raw) as raw
from keyed
