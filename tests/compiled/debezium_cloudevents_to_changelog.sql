-- debezium_cloudevents_to_changelog: the messages of source debezium_cloudevents, as rows of the changelog
-- format     debezium_cloudevents: Debezium change events in the envelope of CloudEvents, as JSON
-- reads      debezium_cloudevents_messages: raw string, origin struct, arrival array
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`payload` struct<
          `iodebeziumop` string, `iodebeziumdb` string, `iodebeziumschema` string, `iodebeziumtable` string, `iodebeziumtxid` string,
          `iodebeziumgtid` string, `iodebeziumtsus` string, `iodebeziumtsms` string, `time` string, `iodebeziumconnector` string,
          `iodebeziumfile` string, `iodebeziumsequence` string, `iodebeziumcommitscn` string, `iodebeziumscn` string,
          `iodebeziumcommitlsn` string, `iodebeziumpos` string, `iodebeziumlsn` string, `iodebeziumchangelsn` string,
          `iodebeziumrow` string, `iodebeziumeventserialno` string, `iodebeziumname` string, `iodebeziumversion` string,
          `iodebeziumthread` string, `iodebeziumserverid` string, `iodebeziumtxtotalorder` string, `id` string,
          `data` struct<
            `payload` struct<
              `after` map<string,string>, `before` map<string,string>>,
            `after` map<string,string>, `before` map<string,string>,
            `schema` struct<
              `fields` array<struct<
                `field`:string,`fields`:array<struct<
                  `field`:string,`name`:string,`type`:string,`default`:string,`parameters`:struct<
                    `connect.decimal.precision`:string,`scale`:string>,`items`:struct<
                    `parameters`:struct<`connect.decimal.precision`:string,`scale`:string>,`name`:string,`type`:string>>>>>>>,
          `specversion` string>,
        `iodebeziumop` string, `iodebeziumdb` string, `iodebeziumschema` string, `iodebeziumtable` string, `iodebeziumtxid` string,
        `iodebeziumgtid` string, `iodebeziumtsus` string, `iodebeziumtsms` string, `time` string, `iodebeziumconnector` string,
        `iodebeziumfile` string, `iodebeziumsequence` string, `iodebeziumcommitscn` string, `iodebeziumscn` string,
        `iodebeziumcommitlsn` string, `iodebeziumpos` string, `iodebeziumlsn` string, `iodebeziumchangelsn` string,
        `iodebeziumrow` string, `iodebeziumeventserialno` string, `iodebeziumname` string, `iodebeziumversion` string,
        `iodebeziumthread` string, `iodebeziumserverid` string, `iodebeziumtxtotalorder` string, `id` string,
        `data` struct<
          `payload` struct<
            `after` map<string,string>, `before` map<string,string>>,
          `after` map<string,string>, `before` map<string,string>,
          `schema` struct<
            `fields` array<struct<
              `field`:string,`fields`:array<struct<
                `field`:string,`name`:string,`type`:string,`default`:string,`parameters`:struct<
                  `connect.decimal.precision`:string,`scale`:string>,`items`:struct<
                  `parameters`:struct<`connect.decimal.precision`:string,`scale`:string>,`name`:string,`type`:string>>>>>>>,
        `specversion` string, `_seal` string, `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '11')) as document
  from `debezium_cloudevents_messages`
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, raw, message.document as m, message.reason as parse_error, message.misfits
  from (select *, `debezium_cloudevents_message`(document, raw) as message from decoded)
),

-- The fields where paths start, with what came beside them.  [message.root]
placed as (
  select * except (m, found), struct(found.*) as m
  from (select *,
      coalesce(m.`payload`,
        struct(m.`iodebeziumop`, m.`iodebeziumdb`, m.`iodebeziumschema`, m.`iodebeziumtable`, m.`iodebeziumtxid`, m.`iodebeziumgtid`,
        m.`iodebeziumtsus`, m.`iodebeziumtsms`, m.`time`, m.`iodebeziumconnector`, m.`iodebeziumfile`, m.`iodebeziumsequence`,
        m.`iodebeziumcommitscn`, m.`iodebeziumscn`, m.`iodebeziumcommitlsn`, m.`iodebeziumpos`, m.`iodebeziumlsn`, m.`iodebeziumchangelsn`,
        m.`iodebeziumrow`, m.`iodebeziumeventserialno`, m.`iodebeziumname`, m.`iodebeziumversion`, m.`iodebeziumthread`,
        m.`iodebeziumserverid`, m.`iodebeziumtxtotalorder`, m.`id`, m.`data`, m.`specversion`)) as found
    from parsed)
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    case when raw is null then 'control tombstone'
      when m.`iodebeziumop` = 'c' then 'row insert'
      when m.`iodebeziumop` = 'r' then 'row snapshot'
      when m.`iodebeziumop` = 'u' and m.`iodebeziumconnector` = 'postgresql' then 'row update'
      when m.`iodebeziumop` = 'u' then 'row update 2'
      when m.`iodebeziumop` = 'd' and m.`iodebeziumconnector` = 'postgresql' then 'row delete'
      when m.`iodebeziumop` = 'd' then 'row delete 2'
      when m.`iodebeziumop` = 't' then 'ddl truncate'
      when m.`iodebeziumop` = 'm' then 'control other'
      when m.`iodebeziumop` is null and m.`specversion` is not null then 'control other' end as verdict
  from placed
),

-- The images of each row change.  [before, after]
message_images as (
  select *,
    array('__debezium_unavailable_value', 'X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==', '["__debezium_unavailable_value"]',
      '5f5f646562657a69756d5f756e617661696c61626c655f76616c7565', '{"__debezium_unavailable_value":"__debezium_unavailable_value"}',
      '[95,95,100,101,98,101,122,105,117,109,95,117,110,97,118,97,105,108,97,98,108,101,95,118,97,108,117,101]',
      '["X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="]', '["5f5f646562657a69756d5f756e617661696c61626c655f76616c7565"]',
      '["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]') as placeholders,
    case when verdict in ('row update', 'row update 2', 'row delete', 'row delete 2') then case when size(m.`data`.`payload`.`before`) > 0
      then m.`data`.`payload`.`before` else m.`data`.`before` end end as found_before,
    case when verdict in ('row insert', 'row snapshot', 'row update', 'row update 2') then case when size(m.`data`.`payload`.`after`) > 0
      then m.`data`.`payload`.`after` else m.`data`.`after` end end as found_after
  from classified
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`iodebeziumop` is null, 'no-op', 'unknown-op')
      when verdict not like 'row %' then null
      when verdict in ('row insert', 'row snapshot')
        and (array_contains(misfits, 'data.payload.after') or not coalesce(size(m.`data`.`payload`.`after`) > 0, false)
        and (array_contains(misfits, 'data.after'))) then 'row-not-an-object'
      when verdict in ('row update', 'row update 2')
        and (array_contains(misfits, 'data.payload.after') or not coalesce(size(m.`data`.`payload`.`after`) > 0, false)
        and (array_contains(misfits, 'data.after')) or array_contains(misfits, 'data.payload.before')
        or not coalesce(size(m.`data`.`payload`.`before`) > 0, false) and (array_contains(misfits, 'data.before'))) then 'row-not-an-object'
      when verdict in ('row delete', 'row delete 2')
        and (array_contains(misfits, 'data.payload.before') or not coalesce(size(m.`data`.`payload`.`before`) > 0, false)
        and (array_contains(misfits, 'data.before'))) then 'row-not-an-object'
      when not coalesce(size(if(verdict in ('row delete', 'row delete 2'), found_before, found_after)) > 0, false) then 'no-row-image'
        end as reason,
    members_of_key(origin.key, cast(array('payload') as array<string>), array()) as key_names,
    map_from_entries(transform(filter(get(filter(m.`data`.`schema`.`fields`, f -> f.`field` = 'after'), 0).`fields`, t -> t.`field` is not
      null), t -> struct(t.`field`,
      concat(coalesce(concat(coalesce(t.`items`.`name`, t.`items`.`type`), '[]'), coalesce(t.`name`, t.`type`)),
      coalesce(concat('(',
      nullif(concat_ws(',', coalesce(t.`items`.`parameters`.`connect.decimal.precision`, t.`parameters`.`connect.decimal.precision`),
      coalesce(t.`items`.`parameters`.`scale`, t.`parameters`.`scale`)), ''), ')'), ''))))) as types,
    `debezium_cloudevents_readers`(types) as readers
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.  [not_sent]
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, readers, if(reason is null, null, raw) as raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    0 as row_index,
    case when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(reason is null, if(verdict in ('row update', 'row delete'), key_part(found_before, types, array(), placeholders, key_names),
      map_filter(table_columns(found_before, types, array()), (c, v) -> array_contains(placeholders, v) is not true)), null) as sent_before,
    if(reason is null, map_filter(table_columns(found_after, types, array()), (c, v) -> array_contains(placeholders, v) is not true), null)
      as sent_after,
    if(reason is null,
      map_concat(coalesce(table_columns(found_before, null, array()), map()), coalesce(table_columns(found_after, null, array()), map()),
      coalesce(types, map())), null) as named_columns,
    `debezium_cloudevents_in_doubt`(raw, sent_before, sent_after, readers) as json_in_doubt,
    case when reason is null and verdict in ('row insert', 'row snapshot', 'row delete', 'row delete 2')
      then other_image(m.`data`.`after`, coalesce(found_before, found_after), array())
      when reason is null and verdict in ('row insert', 'row snapshot')
        then other_image(m.`data`.`payload`.`before`, coalesce(found_before, found_after), array())
      when reason is null and verdict in ('row insert', 'row snapshot', 'row delete', 'row delete 2')
        then other_image(m.`data`.`before`, coalesce(found_before, found_after), array())
      when reason is null and verdict in ('row delete', 'row delete 2')
        then other_image(m.`data`.`payload`.`after`, coalesce(found_before, found_after), array()) end as other_image,
    map_from_entries(transform(filter(get(filter(m.`data`.`schema`.`fields`, f -> f.`field` = 'after'), 0).`fields`, t -> t.`default` is not
      null), t -> struct(coalesce(t.`field`, ''), t.`default`))) as defaults
  from checked
),

-- The canonical text of the values whose text as sent may be another, and the images with it.  [types.table, values]
texts as (
  select *,
    `debezium_cloudevents_texts`(sent_before, readers, json_in_doubt) as texts_before,
    `debezium_cloudevents_texts`(sent_after, readers, json_in_doubt) as texts_after,
    with_texts(sent_before, texts_before) as read_before, with_texts(sent_after, texts_after) as read_after,
    `debezium_cloudevents_texts`(defaults, readers, null) as texts_defaults
  from exploded
),

-- Both images in canonical text.
images as (
  select *, if(size(sent_before) > 0, read_before, null) as before, read_after as after, map_keys(sent_before) as columns_before,
    concat(unread_columns(sent_before, readers, texts_before), unread_columns(sent_after, readers, texts_after)) as columns_as_sent,
    concat(`debezium_cloudevents_ambiguous`(sent_before, readers, texts_before),
      `debezium_cloudevents_ambiguous`(sent_after, readers, texts_after)) as ambiguous_times
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
  kind, 'debezium_cloudevents' as source, 'debezium_cloudevents' as format, op, cast(null as string) as tenant,
  nullif(m.`iodebeziumdb`, '') as db_name, nullif(m.`iodebeziumschema`, '') as schema_name,
  nullif(m.`iodebeziumtable`, '') as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after,
  case when kind <> 'row' then null when before is not null and verdict in ('row update', 'row delete')
    and not coalesce(size(array_except(map_keys(before), key_names)) > 0, false) then 'key'
    else completeness(before, after, named_columns, key_names) end as before_image,
  if(kind = 'row', completeness(after, before, named_columns, key_names), null) as after_image,
  case when op = 'update' then changed_columns(before, after, named_columns) end as changed,
  if(kind in ('row', 'ddl'), types, null) as types,
  coalesce(if(m.`iodebeziumtsus` = '0', null, instant_of_microseconds(m.`iodebeziumtsus`)),
    if(m.`iodebeziumtsms` = '0', null, instant_of_milliseconds(m.`iodebeziumtsms`)), instant_with_offset(m.`time`)) as event_time,
  cast(null as timestamp) as produced_at, coalesce(nullif(m.`iodebeziumtxid`, ''), nullif(m.`iodebeziumgtid`, '')) as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position', order_position(array(case when lower(m.`iodebeziumconnector`) in ('mysql', 'mariadb')
      then get(slice(regexp_extract_all(m.`iodebeziumfile`, '[0-9]+', 0), -1, 1), 0)
      when lower(m.`iodebeziumconnector`) = 'postgresql' then get(regexp_extract_all(m.`iodebeziumsequence`, '[0-9]+', 0), 0)
      when lower(m.`iodebeziumconnector`) = 'oracle' then coalesce(m.`iodebeziumcommitscn`, m.`iodebeziumscn`)
      when lower(m.`iodebeziumconnector`) in ('sqlserver', 'db2') then number_of_lsn(m.`iodebeziumcommitlsn`) else cast(null as string)
        end, case when lower(m.`iodebeziumconnector`) in ('mysql', 'mariadb') then m.`iodebeziumpos`
      when lower(m.`iodebeziumconnector`) = 'postgresql' then m.`iodebeziumlsn`
      when lower(m.`iodebeziumconnector`) = 'oracle' then m.`iodebeziumscn`
      when lower(m.`iodebeziumconnector`) in ('sqlserver', 'db2') then number_of_lsn(m.`iodebeziumchangelsn`) else cast(null as string)
        end, case when lower(m.`iodebeziumconnector`) in ('mysql', 'mariadb') then m.`iodebeziumrow`
      when lower(m.`iodebeziumconnector`) = 'sqlserver' then m.`iodebeziumeventserialno` else cast(null as string) end)), 'arrival',
        arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('connector', m.`iodebeziumconnector`, 'server', m.`iodebeziumname`, 'protocol_version', m.`iodebeziumversion`,
    'gtid', m.`iodebeziumgtid`, 'scn', m.`iodebeziumscn`, 'thread', m.`iodebeziumthread`,
    'log', case when lower(m.`iodebeziumconnector`) in ('mysql', 'mariadb') then nullif(nullif(m.`iodebeziumserverid`, '0'), '')
      else cast(null as string) end,
    'log_position', coalesce(nullif(m.`iodebeziumfile`, ''), nullif(m.`iodebeziumlsn`, ''), nullif(m.`iodebeziumchangelsn`, '')),
    'transaction_position', m.`iodebeziumtxtotalorder`, 'message_id', m.`id`, 'other_image', other_image,
    'key_columns', if(kind = 'row' and key is null, array_join(key_names, ','), null),
    'defaults', nullif(to_json(with_texts(defaults, texts_defaults)), '{}'), 'as_sent', names_joined(columns_as_sent),
    'ambiguous_times', names_joined(ambiguous_times), 'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
  origin, case when kind = 'ddl' then cast(null as string) end as statement, reason,
  found_in_message(reason, 'iodebeziumop', m.`iodebeziumop`, cast(null as string)) as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
