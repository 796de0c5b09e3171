-- drs_avro_to_changelog: the messages of source drs_avro, as rows of the changelog
-- format     drs_avro: Huawei DRS to Kafka, Avro; the schema is a file of the vendor's, named with `schema` on the source
-- reads      drs_avro_messages: raw binary, own_schema string, damage string, origin struct, arrival array
-- functions  Spark's own, and avro_drs_avro_15f522c2 of runner/functions
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names, of the record in the bytes.  [message.schema, records]
decoded as (
  select *,
    avro_drs_avro_15f522c2(raw, own_schema) as record
  from `drs_avro_messages`
),

-- The one record of each message, or why there is not one.
parsed as (
  select * except (record, damage),
    record.fields as m,
    record.images as sent_images,
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
      when m.`isDdl` = 'true' and m.`type` in ('INSERT', 'UPDATE', 'DELETE', 'INIT') then 'ddl by_statement' end,
      case m.`type`
        when 'INSERT' then 'row insert' when 'UPDATE' then 'row update' when 'DELETE' then 'row delete'
        when 'INIT' then 'row snapshot' when 'DDL' then 'ddl by_statement' when 'INIT_DDL' then 'ddl by_statement 2' end,
      case when m.`isDdl` = 'true' then 'ddl by_statement' end) as verdict
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
  select *,
    case when verdict in ('row update', 'row delete') then `image_old` end as found_before,
    case when verdict in ('row insert', 'row update', 'row snapshot') then `image_data` end as found_after
  from named_images
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    coalesce(read_detail) as error_detail,
    array_compact(flatten(array(
      coalesce(sent_images.`data`.as_sent, array()),
      coalesce(sent_images.`old`.as_sent, array())))) as unfit_columns,
    case
      when parse_error is not null then parse_error
      when verdict is null then if(m.`type` is null, 'no-op', 'unknown-op')
      when verdict not like 'row %' then null
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0, false)
        then if(nullif(m.`sql`, '') is not null, 'statement-without-rows', 'no-row-image')
    end as reason,
    key_columns(m.`pkNames`, array()) as key_names,
    m.`mysqlType` as types
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, error_detail, unfit_columns, if(reason is null, null, raw) as raw,
    if(reason is null, split_part(verdict, ' ', 1), 'dead_letter') as kind,
    case when verdict like '% by\\_statement%' then op_of_statement(nullif(m.`sql`, '')) when reason is null
      then split_part(verdict, ' ', 2) end as op,
    0 as row_index,
    if(reason is null, found_before, null) as sent_before,
    if(reason is null, found_after, null) as sent_after
  from checked
),

-- Both images in canonical text.
images as (
  select *,
    if(size(sent_before) > 0, sent_before, null) as before,
    sent_after as after
  from exploded
),

-- The key columns, looked up in the images; null if one of them is missing.  [key]
keyed as (
  select *,
    case when kind = 'row' then columns_of(coalesce(after, before), before, key_names) end as key,
    if(op = 'update' and arrays_overlap(key_names, map_keys(sent_before)), columns_of(before, after, key_names), null) as key_before
  from images
)

-- The columns of the contract, in its order.
select
  kind, 'drs_avro' as source, 'drs_avro' as format, op, cast(null as string) as tenant, nullif(m.`database`, '') as db_name,
  cast(null as string) as schema_name, nullif(m.`table`, '') as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after, if(kind = 'row', completeness(before, after, types, key_names), null) as before_image,
  if(kind = 'row', completeness(after, before, types, key_names), null) as after_image,
  case when op = 'update' then changed_columns(before, after, types) end as changed, if(kind = 'row', types, null) as types,
  instant_of_milliseconds(nullif(m.`es`, '0')) as event_time, instant_of_milliseconds(nullif(m.`ts`, '0')) as produced_at,
  cast(null as string) as tx_id,
  named_struct('generation', 0, 'phase', if(reason is null and verdict in ('row snapshot', 'ddl by_statement 2'), 0, 1),
    'position', order_position(array(m.`id`)), 'arrival', arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('message_id', m.`id`, 'key_columns', if(kind = 'row' and key is null, array_join(key_names, ','), null),
    'as_sent', names_joined(if(kind = 'row', unfit_columns, array())), 'raw_encoding', if(kind = 'dead_letter', 'base64', null))) as meta,
  origin, case when kind = 'ddl' then nullif(m.`sql`, '') end as statement, reason,
  coalesce(if(kind = 'dead_letter', error_detail, null), found_in_message(reason, 'type', m.`type`, m.`sql`)) as detail,
  base64(raw) as raw
from keyed
