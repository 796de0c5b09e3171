-- ticdc_canal_to_changelog: the messages of source ticdc_canal, as rows of the changelog
-- format     ticdc_canal: TiCDC to Kafka, protocol canal-json
-- reads      ticdc_canal_messages: raw string, origin struct, arrival array
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`type` string, `database` string, `table` string,
        `_tidb` struct<
          `commitTs` string, `watermarkTs` string, `claimCheckLocation` string, `onlyHandleKey` string>,
        `sql` string, `es` string, `ts` string, `isDdl` string, `data` array<map<string,string>>, `old` array<map<string,string>>,
        `pkNames` array<string>, `mysqlType` map<string,string>, `_seal` string, `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '3')) as document
  from `ticdc_canal_messages`
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, raw, message.document as m, message.reason as parse_error, message.misfits
  from (select *, `ticdc_canal_message`(document, raw) as message from decoded)
),

-- What each message is, in words: kind, then op; its rows, those before an update, and their types.  [op, each, before, after, types]
classified as (
  select *,
    case when raw is null then 'control tombstone'
      when m.`isDdl` = 'true' and m.`type` in ('INSERT', 'UPDATE', 'DELETE', 'INIT', 'ROW', 'XACOMMIT', 'XAROLLBACK', 'MHEARTBEAT', 'GTID')
        then 'ddl by_statement'
      when m.`isDdl` = 'false' and m.`type` = 'QUERY' then 'control other'
      when m.`type` = 'INSERT' and m.`_tidb`.`onlyHandleKey` = 'true' then 'row insert'
      when m.`type` = 'INSERT' and m.`_tidb`.`claimCheckLocation` is not null then 'row insert'
      when m.`type` = 'INSERT' then 'row insert 2'
      when m.`type` = 'UPDATE' and m.`_tidb`.`onlyHandleKey` = 'true' then 'row update'
      when m.`type` = 'UPDATE' and m.`_tidb`.`claimCheckLocation` is not null then 'row update'
      when m.`type` = 'UPDATE' then 'row update 2'
      when m.`type` = 'DELETE' and m.`_tidb`.`onlyHandleKey` = 'true' then 'row delete'
      when m.`type` = 'DELETE' and m.`_tidb`.`claimCheckLocation` is not null then 'row delete'
      when m.`type` = 'DELETE' then 'row delete 2'
      when m.`type` in ('INIT', 'ROW') then 'row snapshot'
      when m.`type` = 'CREATE' then 'ddl create'
      when m.`type` = 'ALTER' then 'ddl alter'
      when m.`type` = 'ERASE' then 'ddl drop'
      when m.`type` = 'TRUNCATE' then 'ddl truncate'
      when m.`type` = 'RENAME' then 'ddl rename'
      when m.`type` in ('CINDEX', 'DINDEX') then 'ddl index'
      when m.`type` = 'QUERY' then 'ddl by_statement'
      when m.`type` = 'XACOMMIT' then 'control commit'
      when m.`type` = 'XAROLLBACK' then 'control rollback'
      when m.`type` = 'MHEARTBEAT' then 'control heartbeat'
      when m.`type` = 'GTID' then 'control other'
      when m.`type` = 'TIDB_WATERMARK' then 'control watermark'
      when m.`isDdl` = 'true' then 'ddl by_statement' end as verdict,
    table_columns(m.`mysqlType`, null, array()) as types, `ticdc_canal_readers`(types) as readers, m.`data` as rows,
    case when verdict = 'row update' then m.`old`
      when verdict = 'row update 2' then m.`old` end as rows_before,
    case when verdict in ('row insert', 'row insert 2', 'row delete', 'row delete 2', 'row snapshot') then m.`old` end as other_rows
  from parsed
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`type` is null, 'no-op', 'unknown-op')
      when verdict not like 'row %' then null
      when array_contains(misfits, 'data') or exists(m.`data`, r -> r is null) then 'row-not-an-object'
      when not coalesce(exists(rows, r -> size(r) > 0), false)
        then if(nullif(m.`sql`, '') is not null, 'statement-without-rows', 'no-row-image')
      when verdict = 'row update' and array_contains(misfits, 'old') then 'row-not-an-object'
      when verdict = 'row update 2' and array_contains(misfits, 'old') then 'row-not-an-object'
      when size(coalesce(rows_before, other_rows)) > size(rows) then 'uneven-rows' end as reason,
    key_columns(m.`pkNames`, array()) as key_names,
    `ticdc_canal_in_doubt`(raw, rows_before, rows, readers) as rows_in_doubt
  from classified
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, readers, zeros_allowed, json_in_doubt, raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    coalesce(nth, 0) as row_index,
    case when verdict like '% by\\_statement%' then op_of_statement(m.`sql`)
      when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(verdict in ('row update', 'row delete'), key_part(found_before, types, array(), null, key_names),
      table_columns(found_before, types, array())) as sent_before,
    if(verdict in ('row insert', 'row update'), key_part(found_after, types, array(), null, key_names),
      table_columns(found_after, types, array())) as sent_after,
    other_image(other_row, coalesce(found_after, found_before), array()) as other_image
  from (select * except (raw, m.`data`, m.`old`, m.`pkNames`, m.`mysqlType`), if(reason is null, null, raw) as raw,
    if(1L * size(rows) * size(readers) > 10, greatest(100000, octet_length(raw)) div size(rows), null) as zeros_allowed from checked)
  lateral view outer inline(transform(if(reason is null and verdict like 'row %', rows, null), (row, nth) ->
    struct(nth, case verdict when 'row delete' then row when 'row delete 2' then row when 'row update' then get(rows_before, nth)
        when 'row update 2' then get(rows_before, nth) end as found_before,
      case when verdict in ('row insert', 'row insert 2', 'row update', 'row update 2', 'row snapshot') then row end as found_after,
      get(other_rows, nth) as other_row,
      array_join(transform(rows_in_doubt, texts -> get(texts, nth)), ',') as json_in_doubt))) each
),

-- The canonical text of the values whose text as sent may be another, and the images with it.  [types.table, values]
texts as (
  select *,
    `ticdc_canal_texts`(sent_before, readers, zeros_allowed, json_in_doubt) as texts_before,
    `ticdc_canal_texts`(sent_after, readers, zeros_allowed, json_in_doubt) as texts_after,
    with_texts(sent_before, texts_before) as read_before, with_texts(sent_after, texts_after) as read_after
  from exploded
),

-- Both images in canonical text; one of only some columns is laid over the other.  [before.over, after.over]  [not_sent]
images as (
  select *,
    sent_columns(if(verdict = 'row update 2', map_concat(read_after, read_before), read_before), types, 'json', array('JSON_*')) as before,
    sent_columns(read_after, types, 'json', array('JSON_*')) as after, map_keys(sent_before) as columns_before,
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
  kind, 'ticdc_canal' as source, 'ticdc_canal' as format, op, cast(null as string) as tenant, nullif(m.`database`, '') as db_name,
  cast(null as string) as schema_name, nullif(m.`table`, '') as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after,
  case when kind <> 'row' then null when before is not null and verdict in ('row update', 'row delete')
    and not coalesce(size(array_except(map_keys(before), key_names)) > 0, false) then 'key'
    else completeness(before, after, types, key_names) end as before_image,
  case when kind <> 'row' then null when after is not null and verdict in ('row insert', 'row update')
    and not coalesce(size(array_except(map_keys(after), key_names)) > 0, false) then 'key'
    else completeness(after, before, types, key_names) end as after_image,
  case when op = 'update' then changed_among(columns_before, before, after) end as changed,
  if(kind in ('row', 'ddl'), types, null) as types, if(m.`es` = '0', null, instant_of_milliseconds(m.`es`)) as event_time,
  if(m.`ts` = '0', null, instant_of_milliseconds(m.`ts`)) as produced_at, nullif(m.`_tidb`.`commitTs`, '') as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position', order_position(array(m.`_tidb`.`commitTs`)), 'arrival', arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('checkpoint', m.`_tidb`.`watermarkTs`, 'payload_location', m.`_tidb`.`claimCheckLocation`, 'other_image', other_image,
    'key_columns', if(kind in ('row', 'ddl') and key is null, array_join(key_names, ','), null),
    'as_sent', names_joined(columns_as_sent), 'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
  origin, case when kind = 'ddl' then nullif(m.`sql`, '') end as statement, reason,
  found_in_message(reason, 'type', m.`type`, m.`sql`) as detail, if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
