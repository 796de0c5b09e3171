-- dataworks_to_changelog: the messages of source dataworks, as rows of the changelog
-- format     dataworks: Alibaba DataWorks, whole database to Kafka
-- reads      dataworks_messages: raw string, origin struct, arrival array
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`payload` struct<
          `op` string, `sequenceId` string, `ddl` struct<`text` string, `ddlMeta` string>,
          `timestamp` struct<
            `eventTime` string, `systemTime` string, `checkpointTime` string>,
          `scn` string, `before` struct<`dataColumn` map<string,string>>, `after` struct<`dataColumn` map<string,string>>>,
        `schema` struct<
          `source` struct<
            `dbName` string, `schemaName` string, `tableName` string, `dbType` string, `dbVersion` string>,
          `primaryKey` array<string>, `dataColumn` array<struct<`name`:string,`type`:string>>>,
        `version` string, `_seal` string, `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '4')) as document
  from `dataworks_messages`
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, raw, message.document as m, message.reason as parse_error, message.misfits
  from (select *, `dataworks_message`(document, raw) as message from decoded)
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    case when raw is null then 'control tombstone'
      when m.`payload`.`op` = 'INSERT' and size(m.`payload`.`before`.`dataColumn`) > 0 and size(m.`payload`.`after`.`dataColumn`) > 0
        then 'row update'
      when m.`payload`.`op` = 'INSERT' and m.`payload`.`sequenceId` = '-1' then 'row snapshot'
      when m.`payload`.`op` = 'INSERT' then 'row insert'
      when m.`payload`.`op` = 'UPDATE_BEFOR' and size(m.`payload`.`before`.`dataColumn`) > 0 and size(m.`payload`.`after`.`dataColumn`) > 0
        then 'row update'
      when m.`payload`.`op` = 'UPDATE_BEFOR' then 'row update before'
      when m.`payload`.`op` = 'UPDATE_BEFORE' and size(m.`payload`.`before`.`dataColumn`) > 0 and size(m.`payload`.`after`.`dataColumn`) > 0
        then 'row update'
      when m.`payload`.`op` = 'UPDATE_BEFORE' then 'row update before'
      when m.`payload`.`op` = 'UPDATE_AFTER' and m.`payload`.`before` is not null then 'row update'
      when m.`payload`.`op` = 'UPDATE_AFTER' then 'row update after'
      when m.`payload`.`op` = 'DELETE' then 'row delete'
      when m.`payload`.`op` = 'MHEARTBEAT' then 'control heartbeat'
      when m.`payload`.`op` = 'TRANSACTION_BEGIN' then 'control begin'
      when m.`payload`.`op` = 'TRANSACTION_END' then 'control commit'
      when m.`payload`.`op` = 'CREATE' then 'ddl create'
      when m.`payload`.`op` = 'ALTER' then 'ddl alter'
      when m.`payload`.`op` = 'ERASE' then 'ddl drop'
      when m.`payload`.`op` = 'TRUNCATE' then 'ddl truncate'
      when m.`payload`.`op` = 'RENAME' then 'ddl rename'
      when m.`payload`.`op` in ('CINDEX', 'DINDEX') then 'ddl index'
      when m.`payload`.`op` = 'QUERY' then 'ddl by_statement'
      when m.`payload`.`op` = 'XACOMMIT' then 'control commit'
      when m.`payload`.`op` = 'XAROLLBACK' then 'control rollback'
      when m.`payload`.`op` = 'GTID' then 'control other'
      when m.`payload`.`op` is not null and m.`payload`.`ddl`.`text` is not null then 'ddl by_statement' end as verdict
  from parsed
),

-- The images of each row change.  [before, after]
message_images as (
  select *,
    array('#alibaba_rds_row_id#', if(m.`schema`.`source`.`dbType` in ('oracle', 'Oracle', 'ORACLE'), 'rowid', null)) as hidden,
    case when verdict in ('row update', 'row update before', 'row delete') then m.`payload`.`before`.`dataColumn` end as found_before,
    case when verdict in ('row update', 'row snapshot', 'row insert', 'row update after') then m.`payload`.`after`.`dataColumn`
      end as found_after
  from classified
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`payload`.`op` is null, 'no-op', 'unknown-op')
      when verdict not like 'row %' then null
      when verdict = 'row update' and
        (array_contains(misfits, 'payload.after.dataColumn') or array_contains(misfits, 'payload.before.dataColumn'))
        then 'row-not-an-object'
      when verdict in ('row snapshot', 'row insert', 'row update after') and array_contains(misfits, 'payload.after.dataColumn')
        then 'row-not-an-object'
      when verdict in ('row update before', 'row delete') and array_contains(misfits, 'payload.before.dataColumn') then 'row-not-an-object'
      when not coalesce(size(if(verdict in ('row update before', 'row delete'), found_before, found_after)) > 0
        and (size(if(verdict in ('row update before', 'row delete'), found_before, found_after)) > 2
        or size(table_columns(if(verdict in ('row update before', 'row delete'), found_before, found_after), null, hidden)) > 0), false)
        then if(nullif(m.`payload`.`ddl`.`text`, '') is not null, 'statement-without-rows', 'no-row-image') end as reason,
    key_columns(m.`schema`.`primaryKey`, hidden) as key_names,
    map_from_entries(transform(filter(m.`schema`.`dataColumn`, t -> not coalesce(array_contains(hidden, t.`name`), false)
      and t.`name` is not null), t -> struct(t.`name`, t.`type`))) as types,
    `dataworks_readers`(types) as readers
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.  [drop]
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, readers, if(reason is null, null, raw) as raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    0 as row_index,
    case when verdict like '% by\\_statement%' then op_of_statement(m.`payload`.`ddl`.`text`)
      when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(reason is null, table_columns(found_before, types, hidden), null) as sent_before,
    if(reason is null, table_columns(found_after, types, hidden), null) as sent_after,
    `dataworks_in_doubt`(raw, sent_before, sent_after, readers) as json_in_doubt,
    case when reason is null and verdict in ('row snapshot', 'row insert')
      then other_image(m.`payload`.`before`.`dataColumn`, coalesce(found_before, found_after), hidden)
      when reason is null and verdict = 'row delete'
        then other_image(m.`payload`.`after`.`dataColumn`, coalesce(found_before, found_after), hidden) end as other_image
  from checked
),

-- The canonical text of the values whose text as sent may be another, and the images with it.  [types.table, values]
texts as (
  select *,
    `dataworks_texts`(sent_before, readers, json_in_doubt) as texts_before,
    `dataworks_texts`(sent_after, readers, json_in_doubt) as texts_after,
    with_texts(sent_before, texts_before) as read_before, with_texts(sent_after, texts_after) as read_after
  from exploded
),

-- Both images in canonical text.
images as (
  select *, if(size(sent_before) > 0, read_before, null) as before, read_after as after, map_keys(sent_before) as columns_before,
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
  kind, 'dataworks' as source, 'dataworks' as format, op, cast(null as string) as tenant,
  nullif(m.`schema`.`source`.`dbName`, '') as db_name, nullif(m.`schema`.`source`.`schemaName`, '') as schema_name,
  nullif(m.`schema`.`source`.`tableName`, '') as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after, if(kind = 'row', completeness(before, after, types, key_names), null) as before_image,
  if(kind = 'row', completeness(after, before, types, key_names), null) as after_image,
  case when op = 'update' then changed_columns(before, after, types) end as changed,
  if(kind in ('row', 'ddl'), types, null) as types,
  if(m.`payload`.`timestamp`.`eventTime` in ('-1', '0'), null, instant_of_milliseconds(m.`payload`.`timestamp`.`eventTime`)) as event_time,
  if(m.`payload`.`timestamp`.`systemTime` = '0', null, instant_of_milliseconds(m.`payload`.`timestamp`.`systemTime`)) as produced_at,
  cast(null as string) as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position', if(op = 'snapshot', cast(array() as array<decimal(38,0)>), order_position(array(nullif(m.`payload`.`sequenceId`, '-1')))),
      'arrival', arrival, 'row', row_index) as seq,
  case when kind = 'row' and verdict in ('row update before', 'row update after') then nullif(nullif(m.`payload`.`sequenceId`, '-1'), '')
    end as pair_id,
  known_entries(map('scn', m.`payload`.`scn`,
    'rowid',
      coalesce(nullif(m.`payload`.`after`.`dataColumn`.`#alibaba_rds_row_id#`, ''),
      nullif(m.`payload`.`before`.`dataColumn`.`#alibaba_rds_row_id#`, ''), case when lower(m.`schema`.`source`.`dbType`) = 'oracle'
      then coalesce(nullif(m.`payload`.`after`.`dataColumn`.`rowid`, ''), nullif(m.`payload`.`before`.`dataColumn`.`rowid`, ''))
      else cast(null as string) end),
    'old_rowid',
      nullif(coalesce(nullif(m.`payload`.`before`.`dataColumn`.`#alibaba_rds_row_id#`, ''), case
      when lower(m.`schema`.`source`.`dbType`) = 'oracle' then nullif(m.`payload`.`before`.`dataColumn`.`rowid`, '')
      else cast(null as string) end),
      coalesce(nullif(m.`payload`.`after`.`dataColumn`.`#alibaba_rds_row_id#`, ''),
      nullif(m.`payload`.`before`.`dataColumn`.`#alibaba_rds_row_id#`, ''), case when lower(m.`schema`.`source`.`dbType`) = 'oracle'
      then coalesce(nullif(m.`payload`.`after`.`dataColumn`.`rowid`, ''), nullif(m.`payload`.`before`.`dataColumn`.`rowid`, ''))
      else cast(null as string) end)),
    'ddl_meta', m.`payload`.`ddl`.`ddlMeta`, 'db_type', m.`schema`.`source`.`dbType`, 'db_version', m.`schema`.`source`.`dbVersion`,
    'checkpoint', m.`payload`.`timestamp`.`checkpointTime`, 'protocol_version', m.`version`, 'other_image', other_image,
    'key_columns', if(kind in ('row', 'ddl') and key is null, array_join(key_names, ','), null),
    'as_sent', names_joined(columns_as_sent), 'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
  origin, case when kind = 'ddl' then nullif(m.`payload`.`ddl`.`text`, '') end as statement, reason,
  found_in_message(reason, 'payload.op', m.`payload`.`op`, m.`payload`.`ddl`.`text`) as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
