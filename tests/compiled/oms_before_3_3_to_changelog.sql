-- oms_before_3_3_to_changelog: the messages of source oms_before_3_3, as rows of the changelog
-- format     oms_before_3_3: What OMS projects created before 3.3.0 write differently; goes on top of any OMS format
-- reads      oms_before_3_3_messages: raw string, origin struct, arrival array
-- zone       Asia/Shanghai
-- settings   spark.sql.ansi.enabled = true
--            spark.sql.session.timeZone = UTC
--            spark.sql.mapKeyDedupPolicy = LAST_WIN
--            spark.sql.chunkBase64String.enabled = false
--            spark.sql.variable.substitute = false
--            spark.sql.parser.escapedStringLiterals = false
with

-- Numbers that a JSON parser would round are put in quotes first. Inside a text this does harm: see `marked` below.  [message.numbers]
quoted as (
  select
    *,
    regexp_replace(
      if(contains(raw, ' :') or contains(raw, '\t:') or contains(raw, '\n:') or contains(raw, '\r:'),
        regexp_replace(if(contains(raw, '\\ud') or contains(raw, '\\uD'), regexp_replace(
        raw,
        '(?s)\\G((?:[^\\\\]++|\\\\[^u]|\\\\u(?![dD][89a-fA-F])|\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2})*+)\\\\u[dD][89a-fA-F][0-9a-fA-F]{2}',
        '$1\\\\ufffd'), raw), '("\\s++:\\s*+)(?=[-0-9])(-?(?:0|[1-9][0-9]*+)(?:\\.[0-9]++(?:[eE][+\\-]?[0-9]++)?|[eE][+\\-]?[0-9]++)(?![0-9.eE+\\-])|-0(?![0-9.eE]))(?=\\s*+[,}\\]])', '$1"$2"'), if(contains(raw, '\\ud') or contains(raw, '\\uD'), regexp_replace(
        raw,
        '(?s)\\G((?:[^\\\\]++|\\\\[^u]|\\\\u(?![dD][89a-fA-F])|\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2})*+)\\\\u[dD][89a-fA-F][0-9a-fA-F]{2}',
        '$1\\\\ufffd'), raw)),
      '":(?<![^\\\\]\\\\":)(\\s*+)(?=[-0-9])(-?(?:0|[1-9][0-9]*+)(?:\\.[0-9]++(?:[eE][+\\-]?[0-9]++)?|[eE][+\\-]?[0-9]++)(?![0-9.eE+\\-])|-0(?![0-9.eE]))(?=\\s*+[,}\\]])',
      '":$1"$2"') as quoted
  from `oms_before_3_3_messages`
),

-- The fields that the format names. A seal follows the document: if it is in its place, there is nothing else in the message.
decoded as (
  select
    *,
    from_json(
      concat('[', quoted, ',{"seal":"', xxhash64(raw), '"}]'),
      'array<struct<
        `recordType` string,
        `allMetaData` struct<
          `dbType` string,
          `db` string,
          `table_name` string,
          `transId` string,
          `uniqueId` string,
          `timestamp` string,
          `storeDataSequence` string,
          `clusterId` string,
          `checkpoint` string,
          `source_identity` string,
          `ddlType` string,
          `record_primary_value` string,
          `record_primary_key` string>,
        `postStruct` map<string,string>,
        `prevStruct` map<string,string>,
        `seal` string>>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')) as documents
  from quoted
),

-- Where the quotes did harm, or values are objects or lists, the message is read again with marks that tell which quotes to remove.
marked as (
  select
    *,
    from_json(
      concat('[', marked, ',{"seal":"', xxhash64(raw), '"}]'),
      'array<struct<
        `recordType` string,
        `allMetaData` struct<
          `dbType` string,
          `db` string,
          `table_name` string,
          `transId` string,
          `uniqueId` string,
          `timestamp` string,
          `storeDataSequence` string,
          `clusterId` string,
          `checkpoint` string,
          `source_identity` string,
          `ddlType` string,
          `record_primary_value` string,
          `record_primary_key` string>,
        `postStruct` map<string,string>,
        `prevStruct` map<string,string>,
        `seal` string>>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')) as marked_documents
  from (
    select
      *,
      case
        when octet_length(quoted) > octet_length(raw) and not coalesce((get(documents, 1).seal = cast(xxhash64(raw) as string) and size(documents) = 2 and get(documents, 0) is not null), false) then regexp_replace(
      regexp_replace(
        raw,
        '(?s)\\G((?:[^\\\\]++|\\\\[^u]|\\\\u(?![dD][89a-fA-F])|\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2})*+)\\\\u[dD][89a-fA-F][0-9a-fA-F]{2}',
        '$1\\\\ufffd'),
      '(?s)\\G((?:[^"\\-0-9]++|"(?:[^"\\\\]++|\\\\.)*+"|(?!-0(?![0-9.eE]))-?[0-9]++(?![0-9.eE])|-(?![0-9]))*+)(-?(?:0|[1-9][0-9]*+)(?:\\.[0-9]++(?:[eE][+\\-]?[0-9]++)?|[eE][+\\-]?[0-9]++)(?![0-9.eE+\\-])|-0(?![0-9.eE]))',
      '$1"\uFFFF$2"')
        when (
          coalesce(startswith(get(documents, 0).`recordType`, '{') or startswith(get(documents, 0).`recordType`, '['), false)
          or coalesce(
          coalesce(startswith(get(documents, 0).`allMetaData`.`dbType`, '{') or startswith(get(documents, 0).`allMetaData`.`dbType`, '['), false)
          or coalesce(startswith(get(documents, 0).`allMetaData`.`db`, '{') or startswith(get(documents, 0).`allMetaData`.`db`, '['), false)
          or coalesce(startswith(get(documents, 0).`allMetaData`.`table_name`, '{') or startswith(get(documents, 0).`allMetaData`.`table_name`, '['), false)
          or coalesce(startswith(get(documents, 0).`allMetaData`.`transId`, '{') or startswith(get(documents, 0).`allMetaData`.`transId`, '['), false)
          or coalesce(startswith(get(documents, 0).`allMetaData`.`uniqueId`, '{') or startswith(get(documents, 0).`allMetaData`.`uniqueId`, '['), false)
          or coalesce(startswith(get(documents, 0).`allMetaData`.`timestamp`, '{') or startswith(get(documents, 0).`allMetaData`.`timestamp`, '['), false)
          or coalesce(startswith(get(documents, 0).`allMetaData`.`storeDataSequence`, '{') or startswith(get(documents, 0).`allMetaData`.`storeDataSequence`, '['), false)
          or coalesce(startswith(get(documents, 0).`allMetaData`.`clusterId`, '{') or startswith(get(documents, 0).`allMetaData`.`clusterId`, '['), false)
          or coalesce(startswith(get(documents, 0).`allMetaData`.`checkpoint`, '{') or startswith(get(documents, 0).`allMetaData`.`checkpoint`, '['), false)
          or coalesce(startswith(get(documents, 0).`allMetaData`.`source_identity`, '{') or startswith(get(documents, 0).`allMetaData`.`source_identity`, '['), false)
          or coalesce(startswith(get(documents, 0).`allMetaData`.`ddlType`, '{') or startswith(get(documents, 0).`allMetaData`.`ddlType`, '['), false)
          or coalesce(startswith(get(documents, 0).`allMetaData`.`record_primary_value`, '{') or startswith(get(documents, 0).`allMetaData`.`record_primary_value`, '['), false)
          or coalesce(startswith(get(documents, 0).`allMetaData`.`record_primary_key`, '{') or startswith(get(documents, 0).`allMetaData`.`record_primary_key`, '['), false), false)
          or coalesce(exists(map_values(get(documents, 0).`postStruct`), v -> startswith(v, '{') or startswith(v, '[')), false)
          or coalesce(exists(map_values(get(documents, 0).`prevStruct`), v -> startswith(v, '{') or startswith(v, '[')), false)) and raw rlike '[.eE\\-][-+0-9eE]++\\s*+[,}\\]]' then regexp_replace(
      regexp_replace(
        raw,
        '(?s)\\G((?:[^\\\\]++|\\\\[^u]|\\\\u(?![dD][89a-fA-F])|\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2})*+)\\\\u[dD][89a-fA-F][0-9a-fA-F]{2}',
        '$1\\\\ufffd'),
      '(?s)\\G((?:[^"\\-0-9]++|"(?:[^"\\\\]++|\\\\.)*+"|(?!-0(?![0-9.eE]))-?[0-9]++(?![0-9.eE])|-(?![0-9]))*+)(-?(?:0|[1-9][0-9]*+)(?:\\.[0-9]++(?:[eE][+\\-]?[0-9]++)?|[eE][+\\-]?[0-9]++)(?![0-9.eE+\\-])|-0(?![0-9.eE]))',
      '$1"\uFFFF$2"')
      end as marked
    from decoded
  )
),

-- The one document of each message, or why there is not one.
parsed as (
  select
    * except (documents, marked_documents),
    case
      when parse_error is not null then null
      when marked_documents is null then get(documents, 0)
      else if(get(marked_documents, 0) is null, null, named_struct(
        'recordType', if(startswith(get(marked_documents, 0).`recordType`, '\uFFFF'), substr(get(marked_documents, 0).`recordType`, 2), regexp_replace(get(marked_documents, 0).`recordType`, '"\uFFFF([^"]*+)"', '$1')),
        'allMetaData', if(get(marked_documents, 0).`allMetaData` is null, null, named_struct(
          'dbType', if(startswith(get(marked_documents, 0).`allMetaData`.`dbType`, '\uFFFF'), substr(get(marked_documents, 0).`allMetaData`.`dbType`, 2), regexp_replace(get(marked_documents, 0).`allMetaData`.`dbType`, '"\uFFFF([^"]*+)"', '$1')),
          'db', if(startswith(get(marked_documents, 0).`allMetaData`.`db`, '\uFFFF'), substr(get(marked_documents, 0).`allMetaData`.`db`, 2), regexp_replace(get(marked_documents, 0).`allMetaData`.`db`, '"\uFFFF([^"]*+)"', '$1')),
          'table_name', if(startswith(get(marked_documents, 0).`allMetaData`.`table_name`, '\uFFFF'), substr(get(marked_documents, 0).`allMetaData`.`table_name`, 2), regexp_replace(get(marked_documents, 0).`allMetaData`.`table_name`, '"\uFFFF([^"]*+)"', '$1')),
          'transId', if(startswith(get(marked_documents, 0).`allMetaData`.`transId`, '\uFFFF'), substr(get(marked_documents, 0).`allMetaData`.`transId`, 2), regexp_replace(get(marked_documents, 0).`allMetaData`.`transId`, '"\uFFFF([^"]*+)"', '$1')),
          'uniqueId', if(startswith(get(marked_documents, 0).`allMetaData`.`uniqueId`, '\uFFFF'), substr(get(marked_documents, 0).`allMetaData`.`uniqueId`, 2), regexp_replace(get(marked_documents, 0).`allMetaData`.`uniqueId`, '"\uFFFF([^"]*+)"', '$1')),
          'timestamp', if(startswith(get(marked_documents, 0).`allMetaData`.`timestamp`, '\uFFFF'), substr(get(marked_documents, 0).`allMetaData`.`timestamp`, 2), regexp_replace(get(marked_documents, 0).`allMetaData`.`timestamp`, '"\uFFFF([^"]*+)"', '$1')),
          'storeDataSequence', if(startswith(get(marked_documents, 0).`allMetaData`.`storeDataSequence`, '\uFFFF'), substr(get(marked_documents, 0).`allMetaData`.`storeDataSequence`, 2), regexp_replace(get(marked_documents, 0).`allMetaData`.`storeDataSequence`, '"\uFFFF([^"]*+)"', '$1')),
          'clusterId', if(startswith(get(marked_documents, 0).`allMetaData`.`clusterId`, '\uFFFF'), substr(get(marked_documents, 0).`allMetaData`.`clusterId`, 2), regexp_replace(get(marked_documents, 0).`allMetaData`.`clusterId`, '"\uFFFF([^"]*+)"', '$1')),
          'checkpoint', if(startswith(get(marked_documents, 0).`allMetaData`.`checkpoint`, '\uFFFF'), substr(get(marked_documents, 0).`allMetaData`.`checkpoint`, 2), regexp_replace(get(marked_documents, 0).`allMetaData`.`checkpoint`, '"\uFFFF([^"]*+)"', '$1')),
          'source_identity', if(startswith(get(marked_documents, 0).`allMetaData`.`source_identity`, '\uFFFF'), substr(get(marked_documents, 0).`allMetaData`.`source_identity`, 2), regexp_replace(get(marked_documents, 0).`allMetaData`.`source_identity`, '"\uFFFF([^"]*+)"', '$1')),
          'ddlType', if(startswith(get(marked_documents, 0).`allMetaData`.`ddlType`, '\uFFFF'), substr(get(marked_documents, 0).`allMetaData`.`ddlType`, 2), regexp_replace(get(marked_documents, 0).`allMetaData`.`ddlType`, '"\uFFFF([^"]*+)"', '$1')),
          'record_primary_value', if(startswith(get(marked_documents, 0).`allMetaData`.`record_primary_value`, '\uFFFF'), substr(get(marked_documents, 0).`allMetaData`.`record_primary_value`, 2), regexp_replace(get(marked_documents, 0).`allMetaData`.`record_primary_value`, '"\uFFFF([^"]*+)"', '$1')),
          'record_primary_key', if(startswith(get(marked_documents, 0).`allMetaData`.`record_primary_key`, '\uFFFF'), substr(get(marked_documents, 0).`allMetaData`.`record_primary_key`, 2), regexp_replace(get(marked_documents, 0).`allMetaData`.`record_primary_key`, '"\uFFFF([^"]*+)"', '$1')))),
        'postStruct', transform_values(get(marked_documents, 0).`postStruct`, (c, v) -> if(startswith(v, '\uFFFF'), substr(v, 2), regexp_replace(v, '"\uFFFF([^"]*+)"', '$1'))),
        'prevStruct', transform_values(get(marked_documents, 0).`prevStruct`, (c, v) -> if(startswith(v, '\uFFFF'), substr(v, 2), regexp_replace(v, '"\uFFFF([^"]*+)"', '$1'))),
        'seal', if(startswith(get(marked_documents, 0).`seal`, '\uFFFF'), substr(get(marked_documents, 0).`seal`, 2), regexp_replace(get(marked_documents, 0).`seal`, '"\uFFFF([^"]*+)"', '$1'))))
    end as m
  from (
    select
      *,
      case
        when not is_valid_utf8(raw) then 'not-utf8'
        when (get(coalesce(marked_documents, documents), 1).seal = cast(xxhash64(raw) as string) and size(coalesce(marked_documents, documents)) = 2 and get(coalesce(marked_documents, documents), 0) is not null) then null
        when raw is null then null
        when not raw rlike '[^ \\t\\r\\n]' then 'empty'
        when size(from_json(concat('[', coalesce(marked, quoted), ',null]'), 'array<string>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647'))) = 2 then 'not-an-object'
        when from_json(coalesce(marked, quoted), 'map<string,string>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')) is not null then 'trailing-text'
        when from_json(coalesce(marked, quoted), 'array<string>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')) is not null then 'trailing-text'
        when size(from_json(concat('[', coalesce(marked, quoted), ',null]'), 'array<string>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647'))) > 2 then 'trailing-text'
        else 'not-json'
      end as parse_error
    from marked
  )
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select
    *,
    case
      when raw is null then 'control tombstone'
      when m.`recordType` = 'INSERT' and m.`allMetaData`.`timestamp` is null then 'row snapshot'
      when m.`recordType` = 'INSERT' then 'row insert'
      when m.`recordType` = 'UPDATE' then 'row update'
      when m.`recordType` = 'DELETE' then 'row delete'
      when m.`recordType` = 'ROW' then 'row snapshot'
      when m.`recordType` = 'HEARTBEAT' then 'control heartbeat'
      when m.`recordType` = 'DDL' then 'ddl by_statement'
    end as verdict
  from parsed
),

-- The images of each row change.  [before, after]
message_images as (
  select
    *,
    case
      when verdict = 'row update' then m.`prevStruct`
      when verdict = 'row delete' then m.`prevStruct` end as found_before,
    case
      when verdict = 'row snapshot' then m.`postStruct`
      when verdict = 'row insert' then m.`postStruct`
      when verdict = 'row update' then m.`postStruct` end as found_after
  from (
    -- What stands in the place of an image and is not an object. Only row changes without their images need this second reading.
    select
      *,
      case when verdict = 'row snapshot' and (m.`postStruct` is null)
        or verdict = 'row insert' and (m.`postStruct` is null)
        or verdict = 'row update' and (m.`postStruct` is null or m.`prevStruct` is null)
        or verdict = 'row delete' and (m.`prevStruct` is null) then named_struct('texts', from_json(coalesce(marked, quoted), 'struct< `postStruct` string, `prevStruct` string>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647'))) end as reread
    from classified
  )
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select
    origin, arrival, raw, verdict, found_before, found_after,
    named_struct(
      'recordType', m.`recordType`,
      'allMetaData', named_struct(
        'dbType', m.`allMetaData`.`dbType`,
        'db', m.`allMetaData`.`db`,
        'table_name', m.`allMetaData`.`table_name`,
        'transId', m.`allMetaData`.`transId`,
        'uniqueId', m.`allMetaData`.`uniqueId`,
        'timestamp', m.`allMetaData`.`timestamp`,
        'storeDataSequence', m.`allMetaData`.`storeDataSequence`,
        'clusterId', m.`allMetaData`.`clusterId`,
        'checkpoint', m.`allMetaData`.`checkpoint`,
        'source_identity', m.`allMetaData`.`source_identity`,
        'ddlType', m.`allMetaData`.`ddlType`,
        'record_primary_value', m.`allMetaData`.`record_primary_value`,
        'record_primary_key', m.`allMetaData`.`record_primary_key`),
      'postStruct', named_struct(
        'ddl', m.`postStruct`.`ddl`)) as m,
    case
      when parse_error is not null then parse_error
      when verdict is null and m.`recordType` is null then 'no-op'
      when verdict is null then 'unknown-op'
      when verdict not like 'row %' then null
      when reread is not null and case verdict
        when 'row snapshot' then reread.texts.`postStruct` is not null and m.`postStruct` is null
        when 'row insert' then reread.texts.`postStruct` is not null and m.`postStruct` is null
        when 'row update' then reread.texts.`postStruct` is not null and m.`postStruct` is null or reread.texts.`prevStruct` is not null and m.`prevStruct` is null
        when 'row delete' then reread.texts.`prevStruct` is not null and m.`prevStruct` is null end then 'row-not-an-object'
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0 and (size(if(verdict = 'row delete', found_before, found_after)) > 1 or size(if(size(array_distinct(map_keys(if(verdict = 'row delete', found_before, found_after)))) < size(if(verdict = 'row delete', found_before, found_after)) or map_contains_key(if(verdict = 'row delete', found_before, found_after), '__light_type'),
      map_filter(map_from_entries(map_entries(if(verdict = 'row delete', found_before, found_after))), (c, v) -> not (c = '__light_type')), if(verdict = 'row delete', found_before, found_after))) > 0), false) then if(nullif(m.`postStruct`.`ddl`, '') is not null, 'statement-without-rows', 'no-row-image')
    end as reason,
    split(nullif(m.`allMetaData`.`record_primary_key`, ''), '\\Q\\E', -1) as key_names,
    if(size(array_distinct(map_keys(coalesce(transform_values(from_json(m.`postStruct`.`__light_type`, 'map<string,struct<`schemaType`:string>>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')), (c, t) -> t.`schemaType`), transform_values(from_json(m.`prevStruct`.`__light_type`, 'map<string,struct<`schemaType`:string>>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')), (c, t) -> t.`schemaType`))))) < size(coalesce(transform_values(from_json(m.`postStruct`.`__light_type`, 'map<string,struct<`schemaType`:string>>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')), (c, t) -> t.`schemaType`), transform_values(from_json(m.`prevStruct`.`__light_type`, 'map<string,struct<`schemaType`:string>>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')), (c, t) -> t.`schemaType`))) or map_contains_key(coalesce(transform_values(from_json(m.`postStruct`.`__light_type`, 'map<string,struct<`schemaType`:string>>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')), (c, t) -> t.`schemaType`), transform_values(from_json(m.`prevStruct`.`__light_type`, 'map<string,struct<`schemaType`:string>>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')), (c, t) -> t.`schemaType`)), '__light_type'),
      map_filter(map_from_entries(map_entries(coalesce(transform_values(from_json(m.`postStruct`.`__light_type`, 'map<string,struct<`schemaType`:string>>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')), (c, t) -> t.`schemaType`), transform_values(from_json(m.`prevStruct`.`__light_type`, 'map<string,struct<`schemaType`:string>>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')), (c, t) -> t.`schemaType`)))), (c, v) -> not (c = '__light_type')), coalesce(transform_values(from_json(m.`postStruct`.`__light_type`, 'map<string,struct<`schemaType`:string>>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')), (c, t) -> t.`schemaType`), transform_values(from_json(m.`prevStruct`.`__light_type`, 'map<string,struct<`schemaType`:string>>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')), (c, t) -> t.`schemaType`))) as types
  from message_images
),

-- The columns whose text as sent may not be canonical, and the reader of each.  [types.table, values]
column_readers as (
  select
    *,
    transform(
      filter(map_entries(types), t -> trim(regexp_replace(regexp_replace(lower(t.value), '\\([0-9, *]*\\)|\\(.*| unsigned\\b| signed\\b| zerofill\\b', ' '), ' +', ' ')) in (
        'decimal', 'numeric', 'fixed', 'dec', 'number', 'binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob', 'raw', 'geometry', 'point', 'linestring', 'polygon', 'multipoint', 'multilinestring', 'multipolygon', 'geometrycollection', 'geomcollection', 'date', 'time', 'datetime', 'timestamp', 'zoned_datetime', 'timestamp with time zone', 'timestamp with local time zone')),
      t -> struct(
        t.key as column,
        case
          when trim(regexp_replace(regexp_replace(lower(t.value), '\\([0-9, *]*\\)|\\(.*| unsigned\\b| signed\\b| zerofill\\b', ' '), ' +', ' ')) in ('decimal', 'numeric', 'fixed', 'dec', 'number') then 'decimal'
          when trim(regexp_replace(regexp_replace(lower(t.value), '\\([0-9, *]*\\)|\\(.*| unsigned\\b| signed\\b| zerofill\\b', ' '), ' +', ' ')) in ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob', 'raw', 'geometry', 'point', 'linestring', 'polygon', 'multipoint', 'multilinestring', 'multipolygon', 'geometrycollection', 'geomcollection') then 'base64'
          when trim(regexp_replace(regexp_replace(lower(t.value), '\\([0-9, *]*\\)|\\(.*| unsigned\\b| signed\\b| zerofill\\b', ' '), ' +', ' ')) in ('date') then 'iso_date'
          when trim(regexp_replace(regexp_replace(lower(t.value), '\\([0-9, *]*\\)|\\(.*| unsigned\\b| signed\\b| zerofill\\b', ' '), ' +', ' ')) in ('time') then 'iso_time'
          when trim(regexp_replace(regexp_replace(lower(t.value), '\\([0-9, *]*\\)|\\(.*| unsigned\\b| signed\\b| zerofill\\b', ' '), ' +', ' ')) in ('datetime') then 'iso_datetime'
          when trim(regexp_replace(regexp_replace(lower(t.value), '\\([0-9, *]*\\)|\\(.*| unsigned\\b| signed\\b| zerofill\\b', ' '), ' +', ' ')) in ('timestamp') then 'epoch_s'
          when trim(regexp_replace(regexp_replace(lower(t.value), '\\([0-9, *]*\\)|\\(.*| unsigned\\b| signed\\b| zerofill\\b', ' '), ' +', ' ')) in ('zoned_datetime', 'timestamp with time zone', 'timestamp with local time zone') then 'zoned Asia/Shanghai' end as reader)) as readers
  from checked
),

-- One row for each row change; every other message stays one row.
exploded as (
  select
    origin, arrival, m, verdict, reason, key_names, types, readers,
    if(reason is null, null, raw) as raw,
    if(reason is null, split_part(verdict, ' ', 1), 'dead_letter') as kind,
    if(reason is null, case
      when verdict = 'ddl by_statement' then case
        when lower(m.`allMetaData`.`ddlType`) = 'create_index' then 'index'
        when lower(m.`allMetaData`.`ddlType`) = 'drop_index' then 'index'
        when startswith(lower(m.`allMetaData`.`ddlType`), 'create') then 'create'
        when startswith(lower(m.`allMetaData`.`ddlType`), 'alter') then 'alter'
        when startswith(lower(m.`allMetaData`.`ddlType`), 'drop') then 'drop'
        when startswith(lower(m.`allMetaData`.`ddlType`), 'truncate') then 'truncate'
        when startswith(lower(m.`allMetaData`.`ddlType`), 'rename') then 'rename'
        else case
      when nullif(m.`postStruct`.`ddl`, '') rlike '(?is)^(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))*+(?:create|drop)(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++(?:(?:or(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++replace|unique|fulltext|spatial|online|offline|bitmap|clustered|nonclustered|columnstore)(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++)*+index\\b' then 'index'
      else coalesce(element_at(
        map('create', 'create', 'alter', 'alter', 'drop', 'drop', 'truncate', 'truncate', 'rename', 'rename'),
        lower(regexp_extract(nullif(m.`postStruct`.`ddl`, ''), '(?is)^(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))*+([a-z]++)', 1))), 'other') end end
      when split_part(verdict, ' ', 2) = 'by_statement' then case
      when nullif(m.`postStruct`.`ddl`, '') rlike '(?is)^(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))*+(?:create|drop)(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++(?:(?:or(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++replace|unique|fulltext|spatial|online|offline|bitmap|clustered|nonclustered|columnstore)(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++)*+index\\b' then 'index'
      else coalesce(element_at(
        map('create', 'create', 'alter', 'alter', 'drop', 'drop', 'truncate', 'truncate', 'rename', 'rename'),
        lower(regexp_extract(nullif(m.`postStruct`.`ddl`, ''), '(?is)^(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))*+([a-z]++)', 1))), 'other') end
      else split_part(verdict, ' ', 2) end, null) as op,
    0 as row_index,
    if(reason is null, found_before, null) as sent_before,
    if(reason is null, found_after, null) as sent_after
  from column_readers
),

-- The images as sent: of equal names the last counts, and members that are not columns are left out.  [drop]
clean_images as (
  select
    * except (sent_before, sent_after),
    if(map_keys(sent_before) = map_keys(types), sent_before, if(size(array_distinct(map_keys(sent_before))) < size(sent_before) or map_contains_key(sent_before, '__light_type'),
      map_filter(map_from_entries(map_entries(sent_before)), (c, v) -> not (c = '__light_type')), sent_before)) as sent_before,
    if(map_keys(sent_after) = map_keys(types), sent_after, if(size(array_distinct(map_keys(sent_after))) < size(sent_after) or map_contains_key(sent_after, '__light_type'),
      map_filter(map_from_entries(map_entries(sent_after)), (c, v) -> not (c = '__light_type')), sent_after)) as sent_after
  from exploded
),

-- The values whose canonical text is not the text sent, before and after; the text is null where it could not be read.  [values]
new_texts as (
  select
    *,
    if(coalesce(size(readers), 0) = 0, null, array(
      filter(
        transform(
          transform(readers, r -> struct(r.column, r.reader, sent_before[r.column] as sent)),
          v -> struct(v.column, v.sent, case v.reader
            when 'decimal' then if(v.sent rlike '^[+-]?(?:[0-9]++(?:\\.[0-9]*+)?|\\.[0-9]++)$', v.sent, if(v.sent rlike '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$' and abs(try_cast(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 4) as int)) <= 10000,
            get(transform(
              array(named_struct(
                'sign', replace(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 1), '+', ''),
                'digits', concat(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 2), regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 3)),
                'dot', length(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 2)) + try_cast(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 4) as int))),
              n -> regexp_replace(concat(n.sign, case
                when n.dot <= 0 then concat('0.', repeat('0', -n.dot), n.digits)
                when n.dot >= length(n.digits) then concat(n.digits, repeat('0', n.dot - length(n.digits)))
                else concat(left(n.digits, n.dot), '.', substr(n.digits, n.dot + 1)) end), '^(-?)0+(?=[0-9])', '$1')), 0), null))
            when 'base64' then if(v.sent rlike '^[A-Za-z0-9+/]*+={0,2}$' and length(v.sent) % 4 = 0, base64(unbase64(v.sent)), null)
            when 'iso_date' then if(v.sent rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T00:00(?::00)?)?$', left(v.sent, 10), null)
            when 'iso_time' then if(v.sent rlike '^-?[0-9]++:[0-9]{2}$', concat(v.sent, ':00'), if(v.sent rlike '^(?:[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}|-?[0-9]++):[0-9]{2}:[0-9]{2}(?:\\.[0-9]++)?$', if(contains(v.sent, '.'), rtrim('.', rtrim('0', v.sent)), v.sent), null))
            when 'iso_datetime' then if(v.sent rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\\.[0-9]++)?)?$',
            concat(replace(left(v.sent, 16), 'T', ' '), if(length(v.sent) = 16, ':00', substr(v.sent, 17, 3)), rtrim('.', rtrim('0', substr(v.sent, 20)))), null)
            when 'epoch_s' then if(v.sent rlike '^-?[0-9]{1,12}(?:\\.[0-9]{1,9})?$' and try_cast(v.sent as decimal(23,9)) >= -62135596800 and try_cast(v.sent as decimal(23,9)) < 253402300800,
            concat(replace(cast(timestamp_seconds(cast(floor(try_cast(v.sent as decimal(23,9))) as bigint)) as string), ' ', 'T'),
              rtrim('.', rtrim('0', substr(cast(try_cast(v.sent as decimal(23,9)) - floor(try_cast(v.sent as decimal(23,9))) as string), 2))), 'Z'), null)
            when 'zoned Asia/Shanghai' then if(v.sent rlike '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$',
            get(transform(
              array(named_struct(
                'clock', concat_ws(' ', regexp_extract(v.sent, '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$', 1), regexp_extract(v.sent, '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$', 2)),
                'fraction', rtrim('.', rtrim('0', regexp_extract(v.sent, '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$', 3))),
                'zone', trim(regexp_extract(v.sent, '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$', 4)))),
              t -> case
                when t.zone = '' then concat(replace(cast(if(t.clock rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]{1,9})?$' and cast(from_utc_timestamp(try_cast(concat(replace(left(t.clock, 19), 'T', ' '), ' Asia/Shanghai') as timestamp), 'Asia/Shanghai') as string) = replace(left(t.clock, 19), 'T', ' '), try_cast(concat(replace(t.clock, 'T', ' '), ' Asia/Shanghai') as timestamp), null) as string), ' ', 'T'), t.fraction, 'Z')
                when t.zone not like '%/%' then concat(replace(cast(try_cast(concat(t.clock, if(t.zone = 'Z', 'Z', concat(left(t.zone, 3), ':', if(length(t.zone) > 3, right(t.zone, 2), '00')))) as timestamp) as string), ' ', 'T'), t.fraction, 'Z')
                when cast(from_utc_timestamp(try_cast(concat(t.clock, ' ', t.zone) as timestamp), t.zone) as string) = t.clock
                then concat(replace(cast(try_cast(concat(t.clock, ' ', t.zone) as timestamp) as string), ' ', 'T'), t.fraction, 'Z[', t.zone, ']') end), 0), null) end as text)),
        v -> not v.text <=> v.sent),
      filter(
        transform(
          transform(readers, r -> struct(r.column, r.reader, sent_after[r.column] as sent)),
          v -> struct(v.column, v.sent, case v.reader
            when 'decimal' then if(v.sent rlike '^[+-]?(?:[0-9]++(?:\\.[0-9]*+)?|\\.[0-9]++)$', v.sent, if(v.sent rlike '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$' and abs(try_cast(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 4) as int)) <= 10000,
            get(transform(
              array(named_struct(
                'sign', replace(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 1), '+', ''),
                'digits', concat(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 2), regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 3)),
                'dot', length(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 2)) + try_cast(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 4) as int))),
              n -> regexp_replace(concat(n.sign, case
                when n.dot <= 0 then concat('0.', repeat('0', -n.dot), n.digits)
                when n.dot >= length(n.digits) then concat(n.digits, repeat('0', n.dot - length(n.digits)))
                else concat(left(n.digits, n.dot), '.', substr(n.digits, n.dot + 1)) end), '^(-?)0+(?=[0-9])', '$1')), 0), null))
            when 'base64' then if(v.sent rlike '^[A-Za-z0-9+/]*+={0,2}$' and length(v.sent) % 4 = 0, base64(unbase64(v.sent)), null)
            when 'iso_date' then if(v.sent rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T00:00(?::00)?)?$', left(v.sent, 10), null)
            when 'iso_time' then if(v.sent rlike '^-?[0-9]++:[0-9]{2}$', concat(v.sent, ':00'), if(v.sent rlike '^(?:[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}|-?[0-9]++):[0-9]{2}:[0-9]{2}(?:\\.[0-9]++)?$', if(contains(v.sent, '.'), rtrim('.', rtrim('0', v.sent)), v.sent), null))
            when 'iso_datetime' then if(v.sent rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\\.[0-9]++)?)?$',
            concat(replace(left(v.sent, 16), 'T', ' '), if(length(v.sent) = 16, ':00', substr(v.sent, 17, 3)), rtrim('.', rtrim('0', substr(v.sent, 20)))), null)
            when 'epoch_s' then if(v.sent rlike '^-?[0-9]{1,12}(?:\\.[0-9]{1,9})?$' and try_cast(v.sent as decimal(23,9)) >= -62135596800 and try_cast(v.sent as decimal(23,9)) < 253402300800,
            concat(replace(cast(timestamp_seconds(cast(floor(try_cast(v.sent as decimal(23,9))) as bigint)) as string), ' ', 'T'),
              rtrim('.', rtrim('0', substr(cast(try_cast(v.sent as decimal(23,9)) - floor(try_cast(v.sent as decimal(23,9))) as string), 2))), 'Z'), null)
            when 'zoned Asia/Shanghai' then if(v.sent rlike '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$',
            get(transform(
              array(named_struct(
                'clock', concat_ws(' ', regexp_extract(v.sent, '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$', 1), regexp_extract(v.sent, '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$', 2)),
                'fraction', rtrim('.', rtrim('0', regexp_extract(v.sent, '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$', 3))),
                'zone', trim(regexp_extract(v.sent, '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$', 4)))),
              t -> case
                when t.zone = '' then concat(replace(cast(if(t.clock rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]{1,9})?$' and cast(from_utc_timestamp(try_cast(concat(replace(left(t.clock, 19), 'T', ' '), ' Asia/Shanghai') as timestamp), 'Asia/Shanghai') as string) = replace(left(t.clock, 19), 'T', ' '), try_cast(concat(replace(t.clock, 'T', ' '), ' Asia/Shanghai') as timestamp), null) as string), ' ', 'T'), t.fraction, 'Z')
                when t.zone not like '%/%' then concat(replace(cast(try_cast(concat(t.clock, if(t.zone = 'Z', 'Z', concat(left(t.zone, 3), ':', if(length(t.zone) > 3, right(t.zone, 2), '00')))) as timestamp) as string), ' ', 'T'), t.fraction, 'Z')
                when cast(from_utc_timestamp(try_cast(concat(t.clock, ' ', t.zone) as timestamp), t.zone) as string) = t.clock
                then concat(replace(cast(try_cast(concat(t.clock, ' ', t.zone) as timestamp) as string), ' ', 'T'), t.fraction, 'Z[', t.zone, ']') end), 0), null) end as text)),
        v -> not v.text <=> v.sent))) as new_texts
  from clean_images
),

-- The images in canonical text.
canonical as (
  select
    *,
    if(coalesce(size(new_texts[0]), 0) = 0, sent_before,
      map_concat(sent_before, map_from_entries(transform(new_texts[0], v -> struct(v.column, coalesce(v.text, v.sent)))))) as canonical_before,
    if(coalesce(size(new_texts[1]), 0) = 0, sent_after,
      map_concat(sent_after, map_from_entries(transform(new_texts[1], v -> struct(v.column, coalesce(v.text, v.sent)))))) as canonical_after
  from new_texts
),

-- Both images. One that holds only some columns is laid over the other.  [before.over, after.over]
images as (
  select
    *,
    if(size(canonical_before) > 0, canonical_before, null) as before,
    canonical_after as after
  from canonical
),

-- The key columns, looked up in the images; null if one of them is missing.  [key]
keyed as (
  select
    *,
    case
      when kind = 'row' and size(key_names) > 0 and forall(key_names, k -> map_contains_key(coalesce(after, before), k)) then
      map_from_arrays(key_names, transform(key_names, k -> coalesce(after, before)[k]))
      when kind = 'row' and size(key_names) > 0 and size(array_distinct(key_names)) = size(key_names) and size(split(m.`allMetaData`.`record_primary_value`, '\\Q\\E', -1)) = size(key_names) then
      map_from_arrays(key_names, transform(key_names, (k, i) -> if(map_contains_key(coalesce(after, before), k), coalesce(after, before)[k], get(split(m.`allMetaData`.`record_primary_value`, '\\Q\\E', -1), i)))) end as key,
    case when op = 'update' and arrays_overlap(key_names, map_keys(sent_before)) and forall(key_names, k -> map_contains_key(before, k)) then
      map_from_arrays(key_names, transform(key_names, k -> before[k])) end as key_before
  from images
),

-- The entries of meta, null if not known, with the columns that stayed as sent; the vendor's order numbers.  [meta, seq]
meta_and_order as (
  select
    *,
    if(m.`allMetaData`.`timestamp` rlike '^-?[0-9]{1,38}$', try_cast(m.`allMetaData`.`timestamp` as decimal(38,0)), null) as order_1,
    if(m.`allMetaData`.`storeDataSequence` rlike '^-?[0-9]{1,38}$', try_cast(m.`allMetaData`.`storeDataSequence` as decimal(38,0)), null) as order_2,
    map(
      'db_type', nullif(m.`allMetaData`.`dbType`, ''),
      'cluster', nullif(m.`allMetaData`.`clusterId`, ''),
      'checkpoint', nullif(m.`allMetaData`.`checkpoint`, ''),
      'source_identity', nullif(m.`allMetaData`.`source_identity`, ''),
      'key_columns', if(kind = 'row' and key is null, array_join(key_names, ','), null),
      'as_sent', array_join(sort_array(array_distinct(transform(filter(flatten(new_texts), v -> v.text is null), v -> v.column))), ','),
      'raw_encoding', if(reason = 'not-utf8', 'base64', null)) as meta_entries
  from keyed
)

-- The columns of the contract, in its order.
select
  kind,
  'oms_before_3_3' as source,
  'oms_before_3_3' as format,
  op,
  nullif(case when startswith(lower(m.`allMetaData`.`dbType`), 'ob') then nullif(nullif(regexp_extract(m.`allMetaData`.`db`, '^(?s)(.*?)\\..*$', 1), ''), '') when startswith(lower(m.`allMetaData`.`dbType`), 'oceanbase') then nullif(nullif(regexp_extract(m.`allMetaData`.`db`, '^(?s)(.*?)\\..*$', 1), ''), '') else cast(null as string) end, '') as tenant,
  nullif(case when lower(m.`allMetaData`.`dbType`) = 'ob_oracle' then cast(null as string) when lower(m.`allMetaData`.`dbType`) = 'ob_in_oracle_mode' then cast(null as string) when lower(m.`allMetaData`.`dbType`) = 'oracle' then cast(null as string) when startswith(lower(m.`allMetaData`.`dbType`), 'db2') then cast(null as string) when startswith(lower(m.`allMetaData`.`dbType`), 'ob') then nullif(nullif(regexp_extract(m.`allMetaData`.`db`, '^(?s)(?:.*?\\.)?(.*)$', 1), ''), '') when startswith(lower(m.`allMetaData`.`dbType`), 'oceanbase') then nullif(nullif(regexp_extract(m.`allMetaData`.`db`, '^(?s)(?:.*?\\.)?(.*)$', 1), ''), '') when lower(m.`allMetaData`.`dbType`) is null then nullif(m.`allMetaData`.`db`, '') else nullif(m.`allMetaData`.`db`, '') end, '') as db_name,
  nullif(case when lower(m.`allMetaData`.`dbType`) = 'ob_oracle' then nullif(nullif(regexp_extract(m.`allMetaData`.`db`, '^(?s)(?:.*?\\.)?(.*)$', 1), ''), '') when lower(m.`allMetaData`.`dbType`) = 'ob_in_oracle_mode' then nullif(nullif(regexp_extract(m.`allMetaData`.`db`, '^(?s)(?:.*?\\.)?(.*)$', 1), ''), '') when lower(m.`allMetaData`.`dbType`) = 'oracle' then nullif(m.`allMetaData`.`db`, '') when startswith(lower(m.`allMetaData`.`dbType`), 'db2') then nullif(m.`allMetaData`.`db`, '') else cast(null as string) end, '') as schema_name,
  nullif(m.`allMetaData`.`table_name`, '') as table_name,
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
  case verdict when 'control heartbeat' then coalesce(timestamp_micros(if(m.`allMetaData`.`timestamp` rlike '^[0-9]{1,12}(?:\\.[0-9]{1,9})?$' and try_cast(substring_index(m.`allMetaData`.`timestamp`, '.', 1) as bigint) <= 253402300799, cast(cast(try_cast(m.`allMetaData`.`timestamp` as decimal(21,9)) * 1000000 as decimal(38,9)) as bigint), null)), timestamp_micros(if(m.`allMetaData`.`checkpoint` rlike '^[0-9]{1,12}(?:\\.[0-9]{1,9})?$' and try_cast(substring_index(m.`allMetaData`.`checkpoint`, '.', 1) as bigint) <= 253402300799, cast(cast(try_cast(m.`allMetaData`.`checkpoint` as decimal(21,9)) * 1000000 as decimal(38,9)) as bigint), null))) else timestamp_micros(if(m.`allMetaData`.`timestamp` rlike '^[0-9]{1,12}(?:\\.[0-9]{1,9})?$' and try_cast(substring_index(m.`allMetaData`.`timestamp`, '.', 1) as bigint) <= 253402300799, cast(cast(try_cast(m.`allMetaData`.`timestamp` as decimal(21,9)) * 1000000 as decimal(38,9)) as bigint), null)) end as event_time,
  cast(null as timestamp) as produced_at,
  coalesce(nullif(m.`allMetaData`.`transId`, ''), nullif(m.`allMetaData`.`uniqueId`, '')) as tx_id,
  named_struct(
    'generation', 0,
    'phase', if(reason is null and verdict = 'row snapshot', 0, 1),
    'position', case when length(m.`allMetaData`.`timestamp`) > 38 and m.`allMetaData`.`timestamp` rlike '^-?[0-9]{39,}$' then cast(array() as array<decimal(38,0)>) when length(m.`allMetaData`.`storeDataSequence`) > 38 and m.`allMetaData`.`storeDataSequence` rlike '^-?[0-9]{39,}$' then cast(array() as array<decimal(38,0)>) when order_1 is null then cast(array() as array<decimal(38,0)>) when order_2 is null then array(order_1) else array(order_1, order_2) end,
    'arrival', arrival,
    'row', row_index) as seq,
  cast(null as string) as pair_id,
  map_filter(meta_entries, (entry, value) -> value not in ('', 'null')) as meta,
  origin,
  case when kind = 'ddl' then nullif(m.`postStruct`.`ddl`, '') end as statement,
  reason,
  case reason
    when 'no-op' then 'recordType: missing'
    when 'unknown-op' then concat('recordType: "', m.`recordType`, '"')
    when 'no-row-image' then concat('recordType: "', m.`recordType`, '", without a row')
    when 'statement-without-rows' then concat('recordType: "', m.`recordType`, '", without a row; statement: ', m.`postStruct`.`ddl`)
    when 'row-not-an-object' then concat('recordType: "', m.`recordType`, '", with a row that is null or no object')
    when 'uneven-rows' then concat('recordType: "', m.`recordType`, '", with more rows before the change than after it')
    when 'unknown-patch' then concat('recordType: "', m.`recordType`, '", with an update operator that is not known')
  end as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from meta_and_order
