-- drs_avro_to_changelog: the messages of source drs_avro, as rows of the changelog
-- format     drs_avro: Huawei DRS to Kafka, Avro; the schema is a file of the vendor's, named with `schema` on the source
-- reads      drs_avro_messages: raw binary, own_schema string, damage string, origin struct, arrival array
-- functions  Spark's own, and avro_drs_avro_9dcf482b of runner/functions
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
    avro_drs_avro_9dcf482b(raw, own_schema) as record
  from `drs_avro_messages`
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
      when m.`isDdl` = 'true' and m.`type` in ('INSERT', 'UPDATE', 'DELETE', 'INIT') then 'ddl by_statement'
      when m.`type` = 'INSERT' then 'row insert'
      when m.`type` = 'UPDATE' then 'row update'
      when m.`type` = 'DELETE' then 'row delete'
      when m.`type` = 'INIT' then 'row snapshot'
      when m.`type` = 'DDL' then 'ddl by_statement'
      when m.`type` = 'INIT_DDL' then 'ddl by_statement 2'
      when m.`type` is null and m.`isDdl` = 'true' then 'ddl by_statement'
      when m.`type` is not null and m.`isDdl` = 'true' then 'ddl by_statement'
    end as verdict
  from parsed
),

-- The images, column -> value.
named_images as (
  select
    *,
    sent_images.`data`.texts as `image_data`,
    sent_images.`old`.texts as `image_old`
  from classified
),

-- The images of each row change.  [before, after]
message_images as (
  select
    *,
    case
      when verdict = 'row update' then `image_old`
      when verdict = 'row delete' then `image_old` end as found_before,
    case
      when verdict = 'row insert' then `image_data`
      when verdict = 'row update' then `image_data`
      when verdict = 'row snapshot' then `image_data` end as found_after
  from named_images
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select
    origin, arrival, raw, verdict, found_before, found_after,
    coalesce(error_detail) as error_detail,
    array_compact(flatten(array(
      coalesce(sent_images.`data`.as_sent, array()),
      coalesce(sent_images.`old`.as_sent, array())))) as unfit_columns,
    named_struct(
      'type', m.`type`,
      'database', m.`database`,
      'table', m.`table`,
      'sql', m.`sql`,
      'es', m.`es`,
      'ts', m.`ts`,
      'id', m.`id`,
      'isDdl', m.`isDdl`) as m,
    case
      when parse_error is not null then parse_error
      when verdict is null and m.`type` is null then 'no-op'
      when verdict is null then 'unknown-op'
      when verdict not like 'row %' then null
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0, false) then if(nullif(m.`sql`, '') is not null, 'statement-without-rows', 'no-row-image')
    end as reason,
    array_except(m.`pkNames`, array(cast(null as string))) as key_names,
    m.`mysqlType` as types
  from message_images
),

-- One row for each row change; every other message stays one row.
exploded as (
  select
    origin, arrival, m, verdict, reason, key_names, types, error_detail, unfit_columns,
    if(reason is null, null, raw) as raw,
    if(reason is null, split_part(verdict, ' ', 1), 'dead_letter') as kind,
    if(reason is null, case
      when split_part(verdict, ' ', 2) = 'by_statement' then case
      when nullif(m.`sql`, '') rlike '(?is)^(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))*+(?:create|drop)(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++(?:(?:or(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++replace|unique|fulltext|spatial|online|offline|bitmap|clustered|nonclustered|columnstore)(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++)*+index\\b' then 'index'
      else coalesce(element_at(
        map('create', 'create', 'alter', 'alter', 'drop', 'drop', 'truncate', 'truncate', 'rename', 'rename'),
        lower(regexp_extract(nullif(m.`sql`, ''), '(?is)^(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))*+([a-z]++)', 1))), 'other') end
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
    if(m.`id` rlike '^-?[0-9]{1,38}$', try_cast(m.`id` as decimal(38,0)), null) as order_1,
    map(
      'message_id', nullif(m.`id`, ''),
      'key_columns', if(kind = 'row' and key is null, array_join(key_names, ','), null),
      'as_sent', array_join(sort_array(array_distinct(if(kind = 'row', unfit_columns, array()))), ','),
      'raw_encoding', if(kind = 'dead_letter', 'base64', null)) as meta_entries
  from keyed
)

-- The columns of the contract, in its order.
select
  kind,
  'drs_avro' as source,
  'drs_avro' as format,
  op,
  cast(null as string) as tenant,
  nullif(m.`database`, '') as db_name,
  cast(null as string) as schema_name,
  nullif(m.`table`, '') as table_name,
  key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key,
  if(size(key) > 1, to_json(map_from_entries(array_sort(map_entries(key)))), to_json(key)) as key_text,
  before,
  after,
  case when kind <> 'row' then null when before is null then 'none' when not map_keys(before) = map_keys(after) and exists(map_keys(after), c -> not map_contains_key(before, c)) then 'partial' else 'full' end as before_image,
  case when kind <> 'row' then null when after is null then 'none' else 'full' end as after_image,
  case when op = 'update' and before is not null and after is not null then
      if(map_keys(before) = map_keys(after),
        sort_array(filter(map_keys(after), (c, i) -> not get(map_values(before), i) <=> get(map_values(after), i))),
        sort_array(filter(array_union(map_keys(before), map_keys(after)), c -> not (before[c] <=> after[c] and map_contains_key(before, c) = map_contains_key(after, c))))) end as changed,
  if(kind = 'row', types, null) as types,
  timestamp_millis(if(m.`es` rlike '^[0-9]{1,15}$' and try_cast(m.`es` as bigint) <= 253402300799999 and not m.`es` = '0', try_cast(m.`es` as bigint), null)) as event_time,
  timestamp_millis(if(m.`ts` rlike '^[0-9]{1,15}$' and try_cast(m.`ts` as bigint) <= 253402300799999 and not m.`ts` = '0', try_cast(m.`ts` as bigint), null)) as produced_at,
  cast(null as string) as tx_id,
  named_struct(
    'generation', 0,
    'phase', if(reason is null and verdict in ('row snapshot', 'ddl by_statement 2'), 0, 1),
    'position', case when length(m.`id`) > 38 and m.`id` rlike '^-?[0-9]{39,}$' then cast(array() as array<decimal(38,0)>) when order_1 is null then cast(array() as array<decimal(38,0)>) else array(order_1) end,
    'arrival', arrival,
    'row', row_index) as seq,
  cast(null as string) as pair_id,
  map_filter(meta_entries, (entry, value) -> value not in ('', 'null')) as meta,
  origin,
  case when kind = 'ddl' then nullif(m.`sql`, '') end as statement,
  reason,
  coalesce(if(kind = 'dead_letter', error_detail, null), case reason
    when 'no-op' then 'type: missing'
    when 'unknown-op' then concat('type: "', m.`type`, '"')
    when 'no-row-image' then concat('type: "', m.`type`, '", without a row')
    when 'statement-without-rows' then concat('type: "', m.`type`, '", without a row; statement: ', m.`sql`)
    when 'row-not-an-object' then concat('type: "', m.`type`, '", with a row that is null or no object')
    when 'uneven-rows' then concat('type: "', m.`type`, '", with more rows before the change than after it')
    when 'unknown-patch' then concat('type: "', m.`type`, '", with an update operator that is not known')
  end) as detail,
  base64(raw) as raw
from meta_and_order
