-- debezium_flat_to_changelog: the messages of source debezium_flat, as rows of the changelog
-- format     debezium_flat: Debezium change events flattened by the transform ExtractNewRecordState, where deletes are rows with __deleted
-- reads      debezium_flat_messages: raw string, origin struct, arrival array
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`payload` struct<
          `__op` string, `__db` string, `__source_db` string, `__schema` string, `__source_schema` string, `__table` string,
          `__source_table` string, `__transaction_id` string, `__source_gtid` string, `__gtid` string, `__source_txId` string,
          `__txId` string, `__source_ts_ms` string, `__ts_ms` string, `__source_file` string, `__file` string,
          `__source_commit_lsn` string, `__commit_lsn` string, `__source_commit_scn` string, `__commit_scn` string,
          `__source_lsn` string, `__lsn` string, `__source_pos` string, `__pos` string, `__source_change_lsn` string,
          `__change_lsn` string, `__source_scn` string, `__scn` string, `__source_row` string, `__row` string,
          `__source_event_serial_no` string, `__event_serial_no` string, `__source_connector` string, `__connector` string,
          `__source_name` string, `__name` string, `__source_server_id` string, `__server_id` string, `__deleted` string,
          `.` map<string,string>>,
        `__op` string, `__db` string, `__source_db` string, `__schema` string, `__source_schema` string, `__table` string,
        `__source_table` string, `__transaction_id` string, `__source_gtid` string, `__gtid` string, `__source_txId` string,
        `__txId` string, `__source_ts_ms` string, `__ts_ms` string, `__source_file` string, `__file` string,
        `__source_commit_lsn` string, `__commit_lsn` string, `__source_commit_scn` string, `__commit_scn` string,
        `__source_lsn` string, `__lsn` string, `__source_pos` string, `__pos` string, `__source_change_lsn` string,
        `__change_lsn` string, `__source_scn` string, `__scn` string, `__source_row` string, `__row` string,
        `__source_event_serial_no` string, `__event_serial_no` string, `__source_connector` string, `__connector` string,
        `__source_name` string, `__name` string, `__source_server_id` string, `__server_id` string, `__deleted` string,
        `.` map<string,string>,
        `schema` struct<
          `fields` array<struct<
            `field`:string,`name`:string,`type`:string,`default`:string,`parameters`:struct<
                `connect.decimal.precision`:string,`scale`:string>,`items`:struct<
                `parameters`:struct<`connect.decimal.precision`:string,`scale`:string>,`name`:string,`type`:string>>>>,
        `_seal` string, `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '7')) as document
  from `debezium_flat_messages`
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, raw, message.document as m, message.reason as parse_error, message.misfits
  from (select *, `debezium_flat_message`(document, raw) as message from decoded)
),

-- The fields where paths start, with what came beside them.  [message.root, $message, $key, $topic, $headers]
placed as (
  select * except (m, found),
    struct(found.*,
      struct(m.`schema`) as `$message`,
      coalesce(object_of_key(exact_numbers(origin.key), cast(array('payload') as array<string>)),
        object_of_key(origin.key, cast(array('payload') as array<string>))) as `$key`,
      origin.topic as `$topic`,
      map_from_entries(transform(filter(origin.headers, h -> h.key is not null), h -> struct(h.key, h.value))) as `$headers`) as m
  from (select *,
      coalesce(m.`payload`, struct(m.`__op`, m.`__db`, m.`__source_db`, m.`__schema`, m.`__source_schema`, m.`__table`, m.`__source_table`,
        m.`__transaction_id`, m.`__source_gtid`, m.`__gtid`, m.`__source_txId`, m.`__txId`, m.`__source_ts_ms`, m.`__ts_ms`,
        m.`__source_file`, m.`__file`, m.`__source_commit_lsn`, m.`__commit_lsn`, m.`__source_commit_scn`, m.`__commit_scn`,
        m.`__source_lsn`, m.`__lsn`, m.`__source_pos`, m.`__pos`, m.`__source_change_lsn`, m.`__change_lsn`, m.`__source_scn`, m.`__scn`,
        m.`__source_row`, m.`__row`, m.`__source_event_serial_no`, m.`__event_serial_no`, m.`__source_connector`, m.`__connector`,
        m.`__source_name`, m.`__name`, m.`__source_server_id`, m.`__server_id`, m.`__deleted`, m.`.`)) as found
    from parsed)
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    coalesce(
      case when raw is null and size(m.`$key`) > 0 then 'row delete 2'
      when raw is null then 'control tombstone'
      when m.`__deleted` = 'true' then 'row delete' end,
      case coalesce(m.`__op`, m.`$headers`.`__op`) when 'c' then 'row insert' when 'r' then 'row snapshot' when 'u' then 'row update'
        when 'd' then 'row delete'
        when 't' then 'ddl truncate' end,
      case when coalesce(m.`__op`, m.`$headers`.`__op`) is null and m.`__deleted` = 'false' then 'row update'
      when coalesce(m.`__op`, m.`$headers`.`__op`) is null and m.`$topic` is not null then 'row update' end) as verdict
  from placed
),

-- The images of each row change.  [before, after]
message_images as (
  select *,
    array('__deleted', '__op', '__version', '__connector', '__name', '__ts_ms', '__ts_us', '__ts_ns', '__snapshot', '__db', '__schema',
      '__sequence', '__table', '__server_id', '__gtid', '__file', '__pos', '__row', '__thread', '__query', '__txId', '__lsn', '__xmin',
      '__scn', '__commit_scn', '__rs_id', '__ssn', '__redo_thread', '__user_name', '__row_id', '__change_lsn', '__commit_lsn',
      '__event_serial_no', '__transaction_id', '__transaction_total_order', '__transaction_data_collection_order', '__source_version',
      '__source_connector', '__source_name', '__source_ts_ms', '__source_ts_us', '__source_ts_ns', '__source_snapshot', '__source_db',
      '__source_schema', '__source_sequence', '__source_table', '__source_server_id', '__source_gtid', '__source_file', '__source_pos',
      '__source_row', '__source_thread', '__source_query', '__source_txId', '__source_lsn', '__source_xmin', '__source_scn',
      '__source_commit_scn', '__source_rs_id', '__source_ssn', '__source_redo_thread', '__source_user_name', '__source_row_id',
      '__source_change_lsn', '__source_commit_lsn', '__source_event_serial_no') as hidden,
    array('__debezium_unavailable_value', 'X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==', '["__debezium_unavailable_value"]',
      '5f5f646562657a69756d5f756e617661696c61626c655f76616c7565', '{"__debezium_unavailable_value":"__debezium_unavailable_value"}',
      '[95,95,100,101,98,101,122,105,117,109,95,117,110,97,118,97,105,108,97,98,108,101,95,118,97,108,117,101]',
      '["X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="]', '["5f5f646562657a69756d5f756e617661696c61626c655f76616c7565"]',
      '["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]') as placeholders,
    case when verdict = 'row delete 2' then m.`$key`
      when verdict = 'row delete' then m.`.` end as found_before,
    case when verdict in ('row insert', 'row snapshot', 'row update') then m.`.` end as found_after
  from classified
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    case when parse_error is not null then parse_error
      when verdict is null then if(coalesce(m.`__op`, m.`$headers`.`__op`) is null, 'no-op', 'unknown-op')
      when verdict not like 'row %' then null
      when verdict in ('row delete', 'row insert', 'row snapshot', 'row update') and array_contains(misfits, '.') then 'row-not-an-object'
      when not coalesce(size(if(verdict in ('row delete 2', 'row delete'), found_before, found_after)) > 0
        and (size(if(verdict in ('row delete 2', 'row delete'), found_before, found_after)) > 67
        or size(table_columns(if(verdict in ('row delete 2', 'row delete'), found_before, found_after), null, hidden)) > 0), false)
        then 'no-row-image' end as reason,
    members_of_key(origin.key, cast(array('payload') as array<string>), hidden) as key_names,
    map_from_entries(transform(filter(m.`$message`.`schema`.`fields`, t -> not coalesce(array_contains(hidden, t.`field`), false)
      and t.`field` is not null), t ->
      struct(t.`field`,
      concat(coalesce(concat(coalesce(t.`items`.`name`, t.`items`.`type`), '[]'), coalesce(t.`name`, t.`type`)),
      coalesce(concat('(',
      nullif(concat_ws(',', coalesce(t.`items`.`parameters`.`connect.decimal.precision`, t.`parameters`.`connect.decimal.precision`),
      coalesce(t.`items`.`parameters`.`scale`, t.`parameters`.`scale`)), ''), ')'), ''))))) as types,
    `debezium_flat_readers`(types) as readers
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.  [drop]  [not_sent]
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, readers, if(reason is null, null, raw) as raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    0 as row_index,
    case when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(reason is null, if(verdict = 'row delete 2', key_part(found_before, types, hidden, placeholders, key_names),
      map_filter(table_columns(found_before, types, hidden), (c, v) -> array_contains(placeholders, v) is not true)), null) as sent_before,
    if(reason is null, map_filter(table_columns(found_after, types, hidden), (c, v) -> array_contains(placeholders, v) is not true), null)
      as sent_after,
    if(reason is null,
      map_concat(coalesce(table_columns(found_before, null, hidden), map()), coalesce(table_columns(found_after, null, hidden), map()),
      coalesce(types, map())), null) as named_columns,
    map_from_entries(transform(filter(m.`$message`.`schema`.`fields`, t -> t.`default` is not null), t ->
      struct(coalesce(t.`field`, ''), t.`default`))) as defaults
  from checked
),

-- The canonical text of the values whose text as sent may be another, and the images with it.  [types.table, values]
texts as (
  select *, `debezium_flat_texts`(sent_before, readers) as texts_before, `debezium_flat_texts`(sent_after, readers) as texts_after,
    with_texts(sent_before, texts_before) as read_before, with_texts(sent_after, texts_after) as read_after,
    `debezium_flat_texts`(defaults, readers) as texts_defaults
  from exploded
),

-- Both images in canonical text.
images as (
  select *, if(size(sent_before) > 0, read_before, null) as before, read_after as after, map_keys(sent_before) as columns_before,
    concat(unread_columns(sent_before, readers, texts_before), unread_columns(sent_after, readers, texts_after)) as columns_as_sent,
    concat(`debezium_flat_ambiguous`(sent_before, readers, texts_before), `debezium_flat_ambiguous`(sent_after, readers, texts_after)) as
      ambiguous_times
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
  kind, 'debezium_flat' as source, 'debezium_flat' as format, op, cast(null as string) as tenant,
  coalesce(nullif(m.`__db`, ''), nullif(m.`__source_db`, ''), nullif(m.`$headers`.`__db`, ''), nullif(m.`$headers`.`__source_db`, '')) as
    db_name,
  coalesce(nullif(m.`__schema`, ''), nullif(m.`__source_schema`, ''), nullif(m.`$headers`.`__schema`, ''),
    nullif(m.`$headers`.`__source_schema`, '')) as schema_name,
  coalesce(nullif(m.`__table`, ''), nullif(m.`__source_table`, ''), nullif(m.`$headers`.`__table`, ''),
    nullif(m.`$headers`.`__source_table`, ''), nullif(regexp_extract(m.`$topic`, '^(?s).*?\\..*?\\.(.*)$', 1), '')) as table_name,
  key, if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key,
  key_text(key) as key_text, before, after,
  case when kind <> 'row' then null when before is not null and verdict = 'row delete 2'
    and not coalesce(size(array_except(map_keys(before), key_names)) > 0, false) then 'key'
    else completeness(before, after, named_columns, key_names) end as before_image,
  if(kind = 'row', completeness(after, before, named_columns, key_names), null) as after_image,
  case when op = 'update' then changed_columns(before, after, named_columns) end as changed,
  if(kind in ('row', 'ddl'), types, null) as types,
  coalesce(if(m.`__source_ts_ms` = '0', null, instant_of_milliseconds(m.`__source_ts_ms`)),
    if(m.`$headers`.`__source_ts_ms` = '0', null, instant_of_milliseconds(m.`$headers`.`__source_ts_ms`))) as event_time,
  coalesce(if(m.`__ts_ms` = '0', null, instant_of_milliseconds(m.`__ts_ms`)),
    if(m.`$headers`.`__ts_ms` = '0', null, instant_of_milliseconds(m.`$headers`.`__ts_ms`))) as produced_at,
  coalesce(nullif(m.`__transaction_id`, ''), nullif(m.`__source_gtid`, ''), nullif(m.`__gtid`, ''), nullif(m.`__source_txId`, ''),
    nullif(m.`__txId`, '')) as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position',
      order_position(array(coalesce(get(slice(regexp_extract_all(m.`__source_file`, '[0-9]+', 0), -1, 1), 0),
      get(slice(regexp_extract_all(m.`__file`, '[0-9]+', 0), -1, 1), 0), number_of_lsn(m.`__source_commit_lsn`),
      number_of_lsn(m.`__commit_lsn`), m.`__source_commit_scn`, m.`__commit_scn`, m.`__source_lsn`, m.`__lsn`),
      coalesce(m.`__source_pos`, m.`__pos`, number_of_lsn(m.`__source_change_lsn`), number_of_lsn(m.`__change_lsn`), m.`__source_scn`,
      m.`__scn`), coalesce(m.`__source_row`, m.`__row`, m.`__source_event_serial_no`, m.`__event_serial_no`))), 'arrival', arrival, 'row',
      row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('connector', coalesce(nullif(m.`__source_connector`, ''), nullif(m.`__connector`, '')),
    'server', coalesce(nullif(m.`__source_name`, ''), nullif(m.`__name`, '')),
    'gtid', coalesce(nullif(m.`__source_gtid`, ''), nullif(m.`__gtid`, '')),
    'scn', coalesce(nullif(m.`__source_scn`, ''), nullif(m.`__scn`, '')),
    'log', coalesce(nullif(nullif(m.`__source_server_id`, '0'), ''), nullif(nullif(m.`__server_id`, '0'), '')),
    'log_position',
      coalesce(nullif(m.`__source_file`, ''), nullif(m.`__file`, ''), nullif(m.`__source_lsn`, ''), nullif(m.`__lsn`, ''),
      nullif(m.`__source_change_lsn`, ''), nullif(m.`__change_lsn`, '')),
    'key_columns', if(kind = 'row' and key is null, array_join(key_names, ','), null),
    'defaults', nullif(to_json(with_texts(defaults, texts_defaults)), '{}'), 'as_sent', names_joined(columns_as_sent),
    'ambiguous_times', names_joined(ambiguous_times), 'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
  origin, case when kind = 'ddl' then cast(null as string) end as statement, reason,
  found_in_message(reason, '__op or $headers.__op', coalesce(m.`__op`, m.`$headers`.`__op`), cast(null as string)) as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
