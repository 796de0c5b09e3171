-- oms_dataworks_to_changelog: the messages of source oms_dataworks, as rows of the changelog
-- format     oms_dataworks: OceanBase OMS to Kafka, serializer DATAWORKS_V2
-- reads      oms_dataworks_messages: raw string, origin struct, arrival array
-- zone       not declared: local times stay wall clock
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
  from `oms_dataworks_messages`
),

-- The fields that the format names. A seal follows the document: if it is in its place, there is nothing else in the message.
decoded as (
  select
    *,
    from_json(
      concat('[', quoted, ',{"seal":"', xxhash64(raw), '"}]'),
      'array<struct<
        `payload` struct<
          `op` string,
          `ddl` struct<
            `text` string>,
          `timestamp` struct<
            `eventTime` string,
            `systemTime` string,
            `checkpointTime` string>,
          `scn` string,
          `after` struct<
            `data` map<string,string>>,
          `before` struct<
            `data` map<string,string>>>,
        `schema` struct<
          `source` struct<
            `dbName` string,
            `schema` string,
            `table` string,
            `dbType` string,
            `dbVersion` string>,
          `pk` array<string>,
          `column` array<struct<`name`:string,`type`:string>>>,
        `extend` struct<
          `load_fm` string>,
        `version` string,
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
        `payload` struct<
          `op` string,
          `ddl` struct<
            `text` string>,
          `timestamp` struct<
            `eventTime` string,
            `systemTime` string,
            `checkpointTime` string>,
          `scn` string,
          `after` struct<
            `data` map<string,string>>,
          `before` struct<
            `data` map<string,string>>>,
        `schema` struct<
          `source` struct<
            `dbName` string,
            `schema` string,
            `table` string,
            `dbType` string,
            `dbVersion` string>,
          `pk` array<string>,
          `column` array<struct<`name`:string,`type`:string>>>,
        `extend` struct<
          `load_fm` string>,
        `version` string,
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
          coalesce(
          coalesce(startswith(get(documents, 0).`payload`.`op`, '{') or startswith(get(documents, 0).`payload`.`op`, '['), false)
          or coalesce(
          coalesce(startswith(get(documents, 0).`payload`.`ddl`.`text`, '{') or startswith(get(documents, 0).`payload`.`ddl`.`text`, '['), false), false)
          or coalesce(
          coalesce(startswith(get(documents, 0).`payload`.`timestamp`.`eventTime`, '{') or startswith(get(documents, 0).`payload`.`timestamp`.`eventTime`, '['), false)
          or coalesce(startswith(get(documents, 0).`payload`.`timestamp`.`systemTime`, '{') or startswith(get(documents, 0).`payload`.`timestamp`.`systemTime`, '['), false)
          or coalesce(startswith(get(documents, 0).`payload`.`timestamp`.`checkpointTime`, '{') or startswith(get(documents, 0).`payload`.`timestamp`.`checkpointTime`, '['), false), false)
          or coalesce(startswith(get(documents, 0).`payload`.`scn`, '{') or startswith(get(documents, 0).`payload`.`scn`, '['), false)
          or coalesce(
          coalesce(exists(map_values(get(documents, 0).`payload`.`after`.`data`), v -> startswith(v, '{') or startswith(v, '[')), false), false)
          or coalesce(
          coalesce(exists(map_values(get(documents, 0).`payload`.`before`.`data`), v -> startswith(v, '{') or startswith(v, '[')), false), false), false)
          or coalesce(
          coalesce(
          coalesce(startswith(get(documents, 0).`schema`.`source`.`dbName`, '{') or startswith(get(documents, 0).`schema`.`source`.`dbName`, '['), false)
          or coalesce(startswith(get(documents, 0).`schema`.`source`.`schema`, '{') or startswith(get(documents, 0).`schema`.`source`.`schema`, '['), false)
          or coalesce(startswith(get(documents, 0).`schema`.`source`.`table`, '{') or startswith(get(documents, 0).`schema`.`source`.`table`, '['), false)
          or coalesce(startswith(get(documents, 0).`schema`.`source`.`dbType`, '{') or startswith(get(documents, 0).`schema`.`source`.`dbType`, '['), false)
          or coalesce(startswith(get(documents, 0).`schema`.`source`.`dbVersion`, '{') or startswith(get(documents, 0).`schema`.`source`.`dbVersion`, '['), false), false)
          or coalesce(exists(get(documents, 0).`schema`.`pk`, v -> startswith(v, '{') or startswith(v, '[')), false)
          or coalesce(false, false), false)
          or coalesce(
          coalesce(startswith(get(documents, 0).`extend`.`load_fm`, '{') or startswith(get(documents, 0).`extend`.`load_fm`, '['), false), false)
          or coalesce(startswith(get(documents, 0).`version`, '{') or startswith(get(documents, 0).`version`, '['), false)) and raw rlike '[.eE\\-][-+0-9eE]++\\s*+[,}\\]]' then regexp_replace(
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
        'payload', if(get(marked_documents, 0).`payload` is null, null, named_struct(
          'op', if(startswith(get(marked_documents, 0).`payload`.`op`, '\uFFFF'), substr(get(marked_documents, 0).`payload`.`op`, 2), regexp_replace(get(marked_documents, 0).`payload`.`op`, '"\uFFFF([^"]*+)"', '$1')),
          'ddl', if(get(marked_documents, 0).`payload`.`ddl` is null, null, named_struct(
            'text', if(startswith(get(marked_documents, 0).`payload`.`ddl`.`text`, '\uFFFF'), substr(get(marked_documents, 0).`payload`.`ddl`.`text`, 2), regexp_replace(get(marked_documents, 0).`payload`.`ddl`.`text`, '"\uFFFF([^"]*+)"', '$1')))),
          'timestamp', if(get(marked_documents, 0).`payload`.`timestamp` is null, null, named_struct(
            'eventTime', if(startswith(get(marked_documents, 0).`payload`.`timestamp`.`eventTime`, '\uFFFF'), substr(get(marked_documents, 0).`payload`.`timestamp`.`eventTime`, 2), regexp_replace(get(marked_documents, 0).`payload`.`timestamp`.`eventTime`, '"\uFFFF([^"]*+)"', '$1')),
            'systemTime', if(startswith(get(marked_documents, 0).`payload`.`timestamp`.`systemTime`, '\uFFFF'), substr(get(marked_documents, 0).`payload`.`timestamp`.`systemTime`, 2), regexp_replace(get(marked_documents, 0).`payload`.`timestamp`.`systemTime`, '"\uFFFF([^"]*+)"', '$1')),
            'checkpointTime', if(startswith(get(marked_documents, 0).`payload`.`timestamp`.`checkpointTime`, '\uFFFF'), substr(get(marked_documents, 0).`payload`.`timestamp`.`checkpointTime`, 2), regexp_replace(get(marked_documents, 0).`payload`.`timestamp`.`checkpointTime`, '"\uFFFF([^"]*+)"', '$1')))),
          'scn', if(startswith(get(marked_documents, 0).`payload`.`scn`, '\uFFFF'), substr(get(marked_documents, 0).`payload`.`scn`, 2), regexp_replace(get(marked_documents, 0).`payload`.`scn`, '"\uFFFF([^"]*+)"', '$1')),
          'after', if(get(marked_documents, 0).`payload`.`after` is null, null, named_struct(
            'data', transform_values(get(marked_documents, 0).`payload`.`after`.`data`, (c, v) -> if(startswith(v, '\uFFFF'), substr(v, 2), regexp_replace(v, '"\uFFFF([^"]*+)"', '$1'))))),
          'before', if(get(marked_documents, 0).`payload`.`before` is null, null, named_struct(
            'data', transform_values(get(marked_documents, 0).`payload`.`before`.`data`, (c, v) -> if(startswith(v, '\uFFFF'), substr(v, 2), regexp_replace(v, '"\uFFFF([^"]*+)"', '$1'))))))),
        'schema', if(get(marked_documents, 0).`schema` is null, null, named_struct(
          'source', if(get(marked_documents, 0).`schema`.`source` is null, null, named_struct(
            'dbName', if(startswith(get(marked_documents, 0).`schema`.`source`.`dbName`, '\uFFFF'), substr(get(marked_documents, 0).`schema`.`source`.`dbName`, 2), regexp_replace(get(marked_documents, 0).`schema`.`source`.`dbName`, '"\uFFFF([^"]*+)"', '$1')),
            'schema', if(startswith(get(marked_documents, 0).`schema`.`source`.`schema`, '\uFFFF'), substr(get(marked_documents, 0).`schema`.`source`.`schema`, 2), regexp_replace(get(marked_documents, 0).`schema`.`source`.`schema`, '"\uFFFF([^"]*+)"', '$1')),
            'table', if(startswith(get(marked_documents, 0).`schema`.`source`.`table`, '\uFFFF'), substr(get(marked_documents, 0).`schema`.`source`.`table`, 2), regexp_replace(get(marked_documents, 0).`schema`.`source`.`table`, '"\uFFFF([^"]*+)"', '$1')),
            'dbType', if(startswith(get(marked_documents, 0).`schema`.`source`.`dbType`, '\uFFFF'), substr(get(marked_documents, 0).`schema`.`source`.`dbType`, 2), regexp_replace(get(marked_documents, 0).`schema`.`source`.`dbType`, '"\uFFFF([^"]*+)"', '$1')),
            'dbVersion', if(startswith(get(marked_documents, 0).`schema`.`source`.`dbVersion`, '\uFFFF'), substr(get(marked_documents, 0).`schema`.`source`.`dbVersion`, 2), regexp_replace(get(marked_documents, 0).`schema`.`source`.`dbVersion`, '"\uFFFF([^"]*+)"', '$1')))),
          'pk', transform(get(marked_documents, 0).`schema`.`pk`, v -> if(startswith(v, '\uFFFF'), substr(v, 2), regexp_replace(v, '"\uFFFF([^"]*+)"', '$1'))),
          'column', get(marked_documents, 0).`schema`.`column`)),
        'extend', if(get(marked_documents, 0).`extend` is null, null, named_struct(
          'load_fm', if(startswith(get(marked_documents, 0).`extend`.`load_fm`, '\uFFFF'), substr(get(marked_documents, 0).`extend`.`load_fm`, 2), regexp_replace(get(marked_documents, 0).`extend`.`load_fm`, '"\uFFFF([^"]*+)"', '$1')))),
        'version', if(startswith(get(marked_documents, 0).`version`, '\uFFFF'), substr(get(marked_documents, 0).`version`, 2), regexp_replace(get(marked_documents, 0).`version`, '"\uFFFF([^"]*+)"', '$1')),
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
      when m.`payload`.`op` = 'INSERT' then 'row insert'
      when m.`payload`.`op` = 'UPDATE' then 'row update'
      when m.`payload`.`op` = 'DELETE' then 'row delete'
      when m.`payload`.`op` = 'HEARTBEAT' then 'control heartbeat'
      when m.`payload`.`op` = 'TRANSACTION_BEGIN' then 'control begin'
      when m.`payload`.`op` = 'TRANSACTION_END' then 'control commit'
      when m.`payload`.`op` = 'CREATE' then 'ddl create'
      when m.`payload`.`op` = 'ALTER' then 'ddl alter'
      when m.`payload`.`op` = 'ERASE' then 'ddl drop'
      when m.`payload`.`op` = 'TRUNCATE' then 'ddl truncate'
      when m.`payload`.`op` = 'RENAME' then 'ddl rename'
      when m.`payload`.`op` = 'CINDEX' then 'ddl index'
      when m.`payload`.`op` = 'DINDEX' then 'ddl index'
      when m.`payload`.`op` = 'QUERY' then 'ddl by_statement'
      when m.`payload`.`op` = 'XACOMMIT' then 'control commit'
      when m.`payload`.`op` = 'XAROLLBACK' then 'control rollback'
      when m.`payload`.`op` = 'GTID' then 'control other'
      when m.`payload`.`op` is not null and m.`payload`.`ddl`.`text` is not null then 'ddl by_statement'
    end as verdict
  from parsed
),

-- The images of each row change.  [before, after]
message_images as (
  select
    *,
    case
      when verdict = 'row update' then m.`payload`.`before`.`data`
      when verdict = 'row delete' then m.`payload`.`before`.`data` end as found_before,
    case
      when verdict = 'row insert' then m.`payload`.`after`.`data`
      when verdict = 'row update' then m.`payload`.`after`.`data` end as found_after
  from (
    -- What stands in the place of an image and is not an object. Only row changes without their images need this second reading.
    select
      *,
      case when verdict = 'row insert' and (m.`payload`.`after`.`data` is null)
        or verdict = 'row update' and (m.`payload`.`after`.`data` is null or m.`payload`.`before`.`data` is null)
        or verdict = 'row delete' and (m.`payload`.`before`.`data` is null) then named_struct('texts', from_json(coalesce(marked, quoted), 'struct< `payload` struct<   `after` struct<     `data` string>,   `before` struct<     `data` string>>>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647'))) end as reread
    from classified
  )
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select
    origin, arrival, raw, verdict, found_before, found_after,
    named_struct(
      'payload', named_struct(
        'op', m.`payload`.`op`,
        'ddl', named_struct(
          'text', m.`payload`.`ddl`.`text`),
        'timestamp', named_struct(
          'eventTime', m.`payload`.`timestamp`.`eventTime`,
          'systemTime', m.`payload`.`timestamp`.`systemTime`,
          'checkpointTime', m.`payload`.`timestamp`.`checkpointTime`),
        'scn', m.`payload`.`scn`),
      'schema', named_struct(
        'source', named_struct(
          'dbName', m.`schema`.`source`.`dbName`,
          'schema', m.`schema`.`source`.`schema`,
          'table', m.`schema`.`source`.`table`,
          'dbType', m.`schema`.`source`.`dbType`,
          'dbVersion', m.`schema`.`source`.`dbVersion`)),
      'extend', named_struct(
        'load_fm', m.`extend`.`load_fm`),
      'version', m.`version`) as m,
    case
      when parse_error is not null then parse_error
      when verdict is null and m.`payload`.`op` is null then 'no-op'
      when verdict is null then 'unknown-op'
      when verdict not like 'row %' then null
      when reread is not null and case verdict
        when 'row insert' then reread.texts.`payload`.`after`.`data` is not null and m.`payload`.`after`.`data` is null
        when 'row update' then reread.texts.`payload`.`after`.`data` is not null and m.`payload`.`after`.`data` is null or reread.texts.`payload`.`before`.`data` is not null and m.`payload`.`before`.`data` is null
        when 'row delete' then reread.texts.`payload`.`before`.`data` is not null and m.`payload`.`before`.`data` is null end then 'row-not-an-object'
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0, false) then if(nullif(m.`payload`.`ddl`.`text`, '') is not null, 'statement-without-rows', 'no-row-image')
    end as reason,
    array_except(m.`schema`.`pk`, array(cast(null as string))) as key_names,
    if(size(array_distinct(map_keys(map_from_entries(transform(filter(m.`schema`.`column`, t -> t.`name` is not null), t -> struct(t.`name`, t.`type`)))))) < size(map_from_entries(transform(filter(m.`schema`.`column`, t -> t.`name` is not null), t -> struct(t.`name`, t.`type`)))),
      map_from_entries(map_entries(map_from_entries(transform(filter(m.`schema`.`column`, t -> t.`name` is not null), t -> struct(t.`name`, t.`type`))))), map_from_entries(transform(filter(m.`schema`.`column`, t -> t.`name` is not null), t -> struct(t.`name`, t.`type`)))) as types
  from message_images
),

-- The columns whose text as sent may not be canonical, and the reader of each.  [types.table, values]
column_readers as (
  select
    *,
    transform(
      filter(map_entries(types), t -> trim(regexp_replace(regexp_replace(lower(t.value), '\\([0-9, *]*\\)|\\(.*| unsigned\\b| signed\\b| zerofill\\b', ' '), ' +', ' ')) in (
        'decimal', 'numeric', 'fixed', 'dec', 'number', 'bit', 'binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob', 'raw', 'geometry', 'point', 'linestring', 'polygon', 'multipoint', 'multilinestring', 'multipolygon', 'geometrycollection', 'geomcollection', 'time', 'datetime', 'timestamp', 'zoned_datetime', 'timestamp with time zone', 'timestamp with local time zone')),
      t -> struct(
        t.key as column,
        case
          when trim(regexp_replace(regexp_replace(lower(t.value), '\\([0-9, *]*\\)|\\(.*| unsigned\\b| signed\\b| zerofill\\b', ' '), ' +', ' ')) in ('decimal', 'numeric', 'fixed', 'dec', 'number') then 'decimal'
          when trim(regexp_replace(regexp_replace(lower(t.value), '\\([0-9, *]*\\)|\\(.*| unsigned\\b| signed\\b| zerofill\\b', ' '), ' +', ' ')) in ('bit') then 'base64_bits'
          when trim(regexp_replace(regexp_replace(lower(t.value), '\\([0-9, *]*\\)|\\(.*| unsigned\\b| signed\\b| zerofill\\b', ' '), ' +', ' ')) in ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob', 'raw', 'geometry', 'point', 'linestring', 'polygon', 'multipoint', 'multilinestring', 'multipolygon', 'geometrycollection', 'geomcollection') then 'base64'
          when trim(regexp_replace(regexp_replace(lower(t.value), '\\([0-9, *]*\\)|\\(.*| unsigned\\b| signed\\b| zerofill\\b', ' '), ' +', ' ')) in ('time', 'datetime') then 'wall_clock'
          when trim(regexp_replace(regexp_replace(lower(t.value), '\\([0-9, *]*\\)|\\(.*| unsigned\\b| signed\\b| zerofill\\b', ' '), ' +', ' ')) in ('timestamp') then 'epoch_s'
          when trim(regexp_replace(regexp_replace(lower(t.value), '\\([0-9, *]*\\)|\\(.*| unsigned\\b| signed\\b| zerofill\\b', ' '), ' +', ' ')) in ('zoned_datetime', 'timestamp with time zone', 'timestamp with local time zone') then 'zoned' end as reader)) as readers
  from checked
),

-- One row for each row change; every other message stays one row.
exploded as (
  select
    origin, arrival, m, verdict, reason, key_names, types, readers,
    if(reason is null, null, raw) as raw,
    if(reason is null, split_part(verdict, ' ', 1), 'dead_letter') as kind,
    if(reason is null, case
      when split_part(verdict, ' ', 2) = 'by_statement' then case
      when nullif(m.`payload`.`ddl`.`text`, '') rlike '(?is)^(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))*+(?:create|drop)(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++(?:(?:or(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++replace|unique|fulltext|spatial|online|offline|bitmap|clustered|nonclustered|columnstore)(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++)*+index\\b' then 'index'
      else coalesce(element_at(
        map('create', 'create', 'alter', 'alter', 'drop', 'drop', 'truncate', 'truncate', 'rename', 'rename'),
        lower(regexp_extract(nullif(m.`payload`.`ddl`.`text`, ''), '(?is)^(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))*+([a-z]++)', 1))), 'other') end
      else split_part(verdict, ' ', 2) end, null) as op,
    0 as row_index,
    if(reason is null, found_before, null) as sent_before,
    if(reason is null, found_after, null) as sent_after
  from column_readers
),

-- The images as sent: of equal names the last counts, and members that are not columns are left out.
clean_images as (
  select
    * except (sent_before, sent_after),
    if(map_keys(sent_before) = map_keys(types), sent_before, if(size(array_distinct(map_keys(sent_before))) < size(sent_before),
      map_from_entries(map_entries(sent_before)), sent_before)) as sent_before,
    if(map_keys(sent_after) = map_keys(types), sent_after, if(size(array_distinct(map_keys(sent_after))) < size(sent_after),
      map_from_entries(map_entries(sent_after)), sent_after)) as sent_after
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
            when 'base64_bits' then if(v.sent rlike '^[A-Za-z0-9+/]*+={0,2}$' and length(v.sent) % 4 = 0 and length(v.sent) <= 12 and length(unbase64(v.sent)) <= 8, coalesce(conv(hex(unbase64(v.sent)), 16, 10), '0'), null)
            when 'base64' then if(v.sent rlike '^[A-Za-z0-9+/]*+={0,2}$' and length(v.sent) % 4 = 0, base64(unbase64(v.sent)), null)
            when 'wall_clock' then if(v.sent rlike '^(?:[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}|-?[0-9]++):[0-9]{2}:[0-9]{2}(?:\\.[0-9]++)?$', if(contains(v.sent, '.'), rtrim('.', rtrim('0', v.sent)), v.sent), null)
            when 'epoch_s' then if(v.sent rlike '^-?[0-9]{1,12}(?:\\.[0-9]{1,9})?$' and try_cast(v.sent as decimal(23,9)) >= -62135596800 and try_cast(v.sent as decimal(23,9)) < 253402300800,
            concat(replace(cast(timestamp_seconds(cast(floor(try_cast(v.sent as decimal(23,9))) as bigint)) as string), ' ', 'T'),
              rtrim('.', rtrim('0', substr(cast(try_cast(v.sent as decimal(23,9)) - floor(try_cast(v.sent as decimal(23,9))) as string), 2))), 'Z'), null)
            when 'zoned' then if(v.sent rlike '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$',
            get(transform(
              array(named_struct(
                'clock', concat_ws(' ', regexp_extract(v.sent, '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$', 1), regexp_extract(v.sent, '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$', 2)),
                'fraction', rtrim('.', rtrim('0', regexp_extract(v.sent, '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$', 3))),
                'zone', trim(regexp_extract(v.sent, '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$', 4)))),
              t -> case
                when t.zone = '' then concat(t.clock, t.fraction)
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
            when 'base64_bits' then if(v.sent rlike '^[A-Za-z0-9+/]*+={0,2}$' and length(v.sent) % 4 = 0 and length(v.sent) <= 12 and length(unbase64(v.sent)) <= 8, coalesce(conv(hex(unbase64(v.sent)), 16, 10), '0'), null)
            when 'base64' then if(v.sent rlike '^[A-Za-z0-9+/]*+={0,2}$' and length(v.sent) % 4 = 0, base64(unbase64(v.sent)), null)
            when 'wall_clock' then if(v.sent rlike '^(?:[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}|-?[0-9]++):[0-9]{2}:[0-9]{2}(?:\\.[0-9]++)?$', if(contains(v.sent, '.'), rtrim('.', rtrim('0', v.sent)), v.sent), null)
            when 'epoch_s' then if(v.sent rlike '^-?[0-9]{1,12}(?:\\.[0-9]{1,9})?$' and try_cast(v.sent as decimal(23,9)) >= -62135596800 and try_cast(v.sent as decimal(23,9)) < 253402300800,
            concat(replace(cast(timestamp_seconds(cast(floor(try_cast(v.sent as decimal(23,9))) as bigint)) as string), ' ', 'T'),
              rtrim('.', rtrim('0', substr(cast(try_cast(v.sent as decimal(23,9)) - floor(try_cast(v.sent as decimal(23,9))) as string), 2))), 'Z'), null)
            when 'zoned' then if(v.sent rlike '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$',
            get(transform(
              array(named_struct(
                'clock', concat_ws(' ', regexp_extract(v.sent, '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$', 1), regexp_extract(v.sent, '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$', 2)),
                'fraction', rtrim('.', rtrim('0', regexp_extract(v.sent, '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$', 3))),
                'zone', trim(regexp_extract(v.sent, '^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]+)?( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| [A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)?$', 4)))),
              t -> case
                when t.zone = '' then concat(t.clock, t.fraction)
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
      map_from_arrays(key_names, transform(key_names, k -> coalesce(after, before)[k])) end as key,
    case when op = 'update' and arrays_overlap(key_names, map_keys(sent_before)) and forall(key_names, k -> map_contains_key(before, k)) then
      map_from_arrays(key_names, transform(key_names, k -> before[k])) end as key_before
  from images
),

-- The entries of meta, null if not known, with the columns that stayed as sent; the vendor's order numbers.  [meta, seq]
meta_and_order as (
  select
    *,
    if(m.`payload`.`scn` rlike '^-?[0-9]{1,38}$', try_cast(m.`payload`.`scn` as decimal(38,0)), null) as order_1,
    map(
      'scn', nullif(m.`payload`.`scn`, ''),
      'db_type', nullif(m.`schema`.`source`.`dbType`, ''),
      'checkpoint', nullif(m.`payload`.`timestamp`.`checkpointTime`, ''),
      'source_system', nullif(m.`extend`.`load_fm`, ''),
      'db_version', nullif(m.`schema`.`source`.`dbVersion`, ''),
      'protocol_version', nullif(m.`version`, ''),
      'key_columns', if(kind = 'row' and key is null, array_join(key_names, ','), null),
      'as_sent', array_join(sort_array(array_distinct(transform(filter(flatten(new_texts), v -> v.text is null), v -> v.column))), ','),
      'raw_encoding', if(reason = 'not-utf8', 'base64', null)) as meta_entries
  from keyed
)

-- The columns of the contract, in its order.
select
  kind,
  'oms_dataworks' as source,
  'oms_dataworks' as format,
  op,
  cast(null as string) as tenant,
  nullif(m.`schema`.`source`.`dbName`, '') as db_name,
  nullif(m.`schema`.`source`.`schema`, '') as schema_name,
  nullif(m.`schema`.`source`.`table`, '') as table_name,
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
  timestamp_millis(if(m.`payload`.`timestamp`.`eventTime` rlike '^[0-9]{1,15}$' and try_cast(m.`payload`.`timestamp`.`eventTime` as bigint) <= 253402300799999, try_cast(m.`payload`.`timestamp`.`eventTime` as bigint), null)) as event_time,
  timestamp_millis(if(m.`payload`.`timestamp`.`systemTime` rlike '^[0-9]{1,15}$' and try_cast(m.`payload`.`timestamp`.`systemTime` as bigint) <= 253402300799999, try_cast(m.`payload`.`timestamp`.`systemTime` as bigint), null)) as produced_at,
  cast(null as string) as tx_id,
  named_struct(
    'generation', 0,
    'phase', 1,
    'position', case when length(m.`payload`.`scn`) > 38 and m.`payload`.`scn` rlike '^-?[0-9]{39,}$' then cast(array() as array<decimal(38,0)>) when order_1 is null then cast(array() as array<decimal(38,0)>) else array(order_1) end,
    'arrival', arrival,
    'row', row_index) as seq,
  cast(null as string) as pair_id,
  map_filter(meta_entries, (entry, value) -> value not in ('', 'null')) as meta,
  origin,
  case when kind = 'ddl' then nullif(m.`payload`.`ddl`.`text`, '') end as statement,
  reason,
  case reason
    when 'no-op' then 'payload.op: missing'
    when 'unknown-op' then concat('payload.op: "', m.`payload`.`op`, '"')
    when 'no-row-image' then concat('payload.op: "', m.`payload`.`op`, '", without a row')
    when 'statement-without-rows' then concat('payload.op: "', m.`payload`.`op`, '", without a row; statement: ', m.`payload`.`ddl`.`text`)
    when 'row-not-an-object' then concat('payload.op: "', m.`payload`.`op`, '", with a row that is null or no object')
    when 'uneven-rows' then concat('payload.op: "', m.`payload`.`op`, '", with more rows before the change than after it')
    when 'unknown-patch' then concat('payload.op: "', m.`payload`.`op`, '", with an update operator that is not known')
  end as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from meta_and_order
