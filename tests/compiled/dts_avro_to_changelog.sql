-- dts_avro_to_changelog: the messages of source dts_avro, as rows of the changelog
-- format     dts_avro: Alibaba DTS change tracking, Avro
-- reads      dts_avro_messages: raw binary, own_schema string, damage string, origin struct, arrival array
-- functions  Spark's own, and avro_dts_avro_a849a8c2 of runner/functions
-- zone       not declared: local times stay wall clock
-- settings   spark.sql.ansi.enabled = true
--            spark.sql.session.timeZone = UTC
--            spark.sql.mapKeyDedupPolicy = LAST_WIN
--            spark.sql.chunkBase64String.enabled = false
--            spark.sql.variable.substitute = false
--            spark.sql.parser.escapedStringLiterals = false
with

-- The fields that the format names, of the record in the bytes.  [message.schema, records]
decoded as (
  select
    *,
    avro_dts_avro_a849a8c2(raw, own_schema) as record
  from `dts_avro_messages`
),

-- The one record of each message, or why there is not one.
parsed as (
  select
    * except (record, damage),
    record.fields as m,
    record.images as sent_images,
    case
      when damage is not null then 'bad-avro'
      when octet_length(raw) = 0 then 'empty'
      else record.reason
    end as parse_error,
    coalesce(damage, record.detail) as error_detail
  from decoded
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select
    *,
    case
      when raw is null then 'control tombstone'
      when m.`operation` = 'INSERT' then 'row insert'
      when m.`operation` = 'UPDATE' then 'row update'
      when m.`operation` = 'DELETE' then 'row delete'
      when m.`operation` = 'INIT' then 'row snapshot'
      when m.`operation` = 'DDL' then 'ddl by_statement'
      when m.`operation` = 'BEGIN' then 'control begin'
      when m.`operation` = 'COMMIT' then 'control commit'
      when m.`operation` = 'ROLLBACK' then 'control rollback'
      when m.`operation` = 'ABORT' then 'control rollback'
      when m.`operation` = 'HEARTBEAT' then 'control heartbeat'
      when m.`operation` = 'CHECKPOINT' then 'control watermark'
      when m.`operation` is not null then 'control other'
    end as verdict
  from parsed
),

-- The images, column -> value.  [names]
named_images as (
  select
    *,
    case
      when size(m.`fields`.`name`) <> size(sent_images.`afterImages`.texts) then null
      when size(sent_images.`afterImages`.missing) > 0 then map_filter(map_from_arrays(m.`fields`.`name`, sent_images.`afterImages`.texts), (c, v) -> not array_contains(transform(sent_images.`afterImages`.missing, i -> get(m.`fields`.`name`, i)), c))
      else map_from_arrays(m.`fields`.`name`, sent_images.`afterImages`.texts) end as `image_afterImages`,
    case
      when size(m.`fields`.`name`) <> size(sent_images.`beforeImages`.texts) then null
      when size(sent_images.`beforeImages`.missing) > 0 then map_filter(map_from_arrays(m.`fields`.`name`, sent_images.`beforeImages`.texts), (c, v) -> not array_contains(transform(sent_images.`beforeImages`.missing, i -> get(m.`fields`.`name`, i)), c))
      else map_from_arrays(m.`fields`.`name`, sent_images.`beforeImages`.texts) end as `image_beforeImages`
  from classified
),

-- The images of each row change.  [before, after]
message_images as (
  select
    *,
    case
      when verdict = 'row update' then `image_beforeImages`
      when verdict = 'row delete' then `image_beforeImages` end as found_before,
    case
      when verdict = 'row insert' then `image_afterImages`
      when verdict = 'row update' then `image_afterImages`
      when verdict = 'row snapshot' then `image_afterImages` end as found_after
  from named_images
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select
    origin, arrival, raw, verdict, found_before, found_after,
    coalesce(error_detail, if(sent_images.`afterImages`.texts is not null and `image_afterImages` is null, concat('afterImages: ', size(sent_images.`afterImages`.texts), ' values for ', coalesce(size(m.`fields`.`name`), 0), ' columns'), null), if(sent_images.`beforeImages`.texts is not null and `image_beforeImages` is null, concat('beforeImages: ', size(sent_images.`beforeImages`.texts), ' values for ', coalesce(size(m.`fields`.`name`), 0), ' columns'), null)) as error_detail,
    array_compact(flatten(array(
      if(`image_afterImages` is null, array(), coalesce(transform(sent_images.`afterImages`.as_sent, i -> get(m.`fields`.`name`, i)), array())),
      if(`image_beforeImages` is null, array(), coalesce(transform(sent_images.`beforeImages`.as_sent, i -> get(m.`fields`.`name`, i)), array()))))) as unfit_columns,
    coalesce(case
      when verdict = 'row update' then size(sent_images.`beforeImages`.missing) > 0
      when verdict = 'row delete' then size(sent_images.`beforeImages`.missing) > 0 end, false) as lacks_before,
    coalesce(case
      when verdict = 'row insert' then size(sent_images.`afterImages`.missing) > 0
      when verdict = 'row update' then size(sent_images.`afterImages`.missing) > 0
      when verdict = 'row snapshot' then size(sent_images.`afterImages`.missing) > 0 end, false) as lacks_after,
    named_struct(
      'operation', m.`operation`,
      'source', named_struct(
        'sourceType', m.`source`.`sourceType`,
        'version', m.`source`.`version`),
      'objectName', m.`objectName`,
      'sourceTxid', m.`sourceTxid`,
      'afterImages', m.`afterImages`,
      'sourceTimestamp', m.`sourceTimestamp`,
      'id', m.`id`,
      'sourcePosition', m.`sourcePosition`,
      'safeSourcePosition', m.`safeSourcePosition`,
      'tags', named_struct(
        'pk_uk_info', m.`tags`.`pk_uk_info`),
      'version', m.`version`) as m,
    case
      when parse_error is not null then parse_error
      when verdict is null and m.`operation` is null then 'no-op'
      when verdict is null then 'unknown-op'
      when verdict not like 'row %' then null
      when sent_images.`afterImages`.texts is not null and `image_afterImages` is null then 'schema-mismatch'
      when sent_images.`beforeImages`.texts is not null and `image_beforeImages` is null then 'schema-mismatch'
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0, false) then if(nullif(m.`afterImages`, '') is not null, 'statement-without-rows', 'no-row-image')
    end as reason,
    array_except(from_json(m.`tags`.`pk_uk_info`, 'struct<`PRIMARY`:array<string>>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')).`PRIMARY`, array(cast(null as string))) as key_names,
    if(size(m.`fields`.`name`) = size(m.`fields`.`dataTypeNumber`), map_from_arrays(m.`fields`.`name`, m.`fields`.`dataTypeNumber`), null) as types
  from message_images
),

-- One row for each row change; every other message stays one row.
exploded as (
  select
    origin, arrival, m, verdict, reason, key_names, types, error_detail, unfit_columns, lacks_before, lacks_after,
    if(reason is null, null, raw) as raw,
    if(reason is null, split_part(verdict, ' ', 1), 'dead_letter') as kind,
    if(reason is null, case
      when split_part(verdict, ' ', 2) = 'by_statement' then case
      when nullif(m.`afterImages`, '') rlike '(?is)^(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))*+(?:create|drop)(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++(?:(?:or(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++replace|unique|fulltext|spatial|online|offline|bitmap|clustered|nonclustered|columnstore)(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++)*+index\\b' then 'index'
      else coalesce(element_at(
        map('create', 'create', 'alter', 'alter', 'drop', 'drop', 'truncate', 'truncate', 'rename', 'rename'),
        lower(regexp_extract(nullif(m.`afterImages`, ''), '(?is)^(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))*+([a-z]++)', 1))), 'other') end
      else split_part(verdict, ' ', 2) end, null) as op,
    0 as row_index,
    if(reason is null, found_before, null) as sent_before,
    if(reason is null, found_after, null) as sent_after
  from checked
),

-- The images as sent: of equal names the last counts, and members that are not columns are left out.
clean_images as (
  select
    * except (sent_before, sent_after),
    sent_before as sent_before,
    sent_after as sent_after
  from exploded
),

-- Both images. One that holds only some columns is laid over the other.  [before.over, after.over]
images as (
  select
    *,
    if(size(sent_before) > 0, sent_before, null) as before,
    sent_after as after
  from clean_images
),

-- The key columns, looked up in the images; null if one of them is missing.  [key]
keyed as (
  select
    *,
    case
      when kind = 'row' and size(key_names) > 0 and forall(key_names, k -> map_contains_key(coalesce(after, before), k)) then
      map_from_arrays(key_names, transform(key_names, k -> coalesce(after, before)[k])) end as key,
    case when op = 'update' and arrays_overlap(key_names, map_keys(sent_before)) and forall(key_names, k -> map_contains_key(before, k)) then
      map_from_arrays(key_names, transform(key_names, k -> before[k])) end as key_before
  from images
),

-- The entries of meta, null if not known, with the columns that stayed as sent; the vendor's order numbers.  [meta, seq]
meta_and_order as (
  select
    *,
    map(
      'message_id', nullif(m.`id`, ''),
      'log_position', nullif(m.`sourcePosition`, ''),
      'checkpoint', nullif(m.`safeSourcePosition`, ''),
      'unique_keys', nullif(m.`tags`.`pk_uk_info`, ''),
      'db_type', nullif(m.`source`.`sourceType`, ''),
      'db_version', nullif(m.`source`.`version`, ''),
      'protocol_version', nullif(m.`version`, ''),
      'key_columns', if(kind = 'row' and key is null, array_join(key_names, ','), null),
      'as_sent', array_join(sort_array(array_distinct(if(kind = 'row', unfit_columns, array()))), ','),
      'raw_encoding', if(kind = 'dead_letter', 'base64', null)) as meta_entries
  from keyed
)

-- The columns of the contract, in its order.
select
  kind,
  'dts_avro' as source,
  'dts_avro' as format,
  op,
  cast(null as string) as tenant,
  nullif(case when lower(m.`source`.`sourceType`) = 'oracle' then nullif(replace(nullif(regexp_extract(m.`objectName`, '^(?s)(.*?)\\..*?\\..*$', 1), ''), '\\u002E', '.'), '') when lower(m.`source`.`sourceType`) = 'db2' then nullif(replace(nullif(regexp_extract(m.`objectName`, '^(?s)(.*?)\\..*?\\..*$', 1), ''), '\\u002E', '.'), '') else nullif(replace(nullif(regexp_extract(m.`objectName`, '^(?s)(.*?)(?:\\..*)?$', 1), ''), '\\u002E', '.'), '') end, '') as db_name,
  nullif(case when lower(m.`source`.`sourceType`) = 'oracle' then coalesce(nullif(replace(nullif(regexp_extract(m.`objectName`, '^(?s).*?\\.(.*?)\\..*$', 1), ''), '\\u002E', '.'), ''), nullif(replace(nullif(regexp_extract(m.`objectName`, '^(?s)(.*?)(?:\\..*)?$', 1), ''), '\\u002E', '.'), '')) when lower(m.`source`.`sourceType`) = 'db2' then coalesce(nullif(replace(nullif(regexp_extract(m.`objectName`, '^(?s).*?\\.(.*?)\\..*$', 1), ''), '\\u002E', '.'), ''), nullif(replace(nullif(regexp_extract(m.`objectName`, '^(?s)(.*?)(?:\\..*)?$', 1), ''), '\\u002E', '.'), '')) else nullif(replace(nullif(regexp_extract(m.`objectName`, '^(?s).*?\\.(.*?)\\..*$', 1), ''), '\\u002E', '.'), '') end, '') as schema_name,
  nullif(replace(nullif(regexp_extract(m.`objectName`, '^(?s).*?\\.(?:.*?\\.)?(.*)$', 1), ''), '\\u002E', '.'), '') as table_name,
  key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key,
  if(size(key) > 1, to_json(map_from_entries(array_sort(map_entries(key)))), to_json(key)) as key_text,
  before,
  after,
  case when kind <> 'row' then null when before is null then 'none' when lacks_before then 'partial' when not map_keys(before) = map_keys(after) and exists(map_keys(after), c -> not map_contains_key(before, c)) then 'partial' else 'full' end as before_image,
  case when kind <> 'row' then null when after is null then 'none' when lacks_after then 'partial' else 'full' end as after_image,
  case when op = 'update' and before is not null and after is not null then
      if(map_keys(before) = map_keys(after),
        sort_array(filter(map_keys(after), (c, i) -> not get(map_values(before), i) <=> get(map_values(after), i))),
        sort_array(filter(array_union(map_keys(before), map_keys(after)), c -> not (before[c] <=> after[c] and map_contains_key(before, c) = map_contains_key(after, c))))) end as changed,
  if(kind = 'row', types, null) as types,
  timestamp_micros(if(m.`sourceTimestamp` rlike '^[0-9]{1,12}(?:\\.[0-9]{1,9})?$' and try_cast(substring_index(m.`sourceTimestamp`, '.', 1) as bigint) <= 253402300799, cast(cast(try_cast(m.`sourceTimestamp` as decimal(21,9)) * 1000000 as decimal(38,9)) as bigint), null)) as event_time,
  cast(null as timestamp) as produced_at,
  nullif(m.`sourceTxid`, '') as tx_id,
  named_struct(
    'generation', 0,
    'phase', if(reason is null and verdict = 'row snapshot', 0, 1),
    'position', cast(array() as array<decimal(38,0)>),
    'arrival', arrival,
    'row', row_index) as seq,
  cast(null as string) as pair_id,
  map_filter(meta_entries, (entry, value) -> value not in ('', 'null')) as meta,
  origin,
  case when kind = 'ddl' then nullif(m.`afterImages`, '') end as statement,
  reason,
  coalesce(if(kind = 'dead_letter', error_detail, null), case reason
    when 'no-op' then 'operation: missing'
    when 'unknown-op' then concat('operation: "', m.`operation`, '"')
    when 'no-row-image' then concat('operation: "', m.`operation`, '", without a row')
    when 'statement-without-rows' then concat('operation: "', m.`operation`, '", without a row; statement: ', m.`afterImages`)
    when 'row-not-an-object' then concat('operation: "', m.`operation`, '", with a row that is null or no object')
    when 'uneven-rows' then concat('operation: "', m.`operation`, '", with more rows before the change than after it')
    when 'unknown-patch' then concat('operation: "', m.`operation`, '", with an update operator that is not known')
  end) as detail,
  base64(raw) as raw
from meta_and_order
