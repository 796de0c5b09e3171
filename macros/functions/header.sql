-- What stands beside the rows of a message: the kind of a statement, instants, order numbers, and why a message is refused.
{%- set skipped -%} (?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$)) {%- endset %}

create function op_of_statement(
  statement string comment 'a DDL statement')
returns string
comment 'The op of a statement, from its first words after comments: create, alter, drop, truncate, rename, index (one is created or dropped) or other.'
return case
  when statement rlike concat('(?is)^{{ skipped }}*+(?:create|drop){{ skipped }}++(?:(?:or{{ skipped }}++replace|unique|fulltext|spatial|',
    'online|offline|bitmap|clustered|nonclustered|columnstore){{ skipped }}++)*+index\\b') then 'index'
  else coalesce(element_at(
    map('create', 'create', 'alter', 'alter', 'drop', 'drop', 'truncate', 'truncate', 'rename', 'rename'),
    lower(regexp_extract(statement, '(?is)^{{ skipped }}*+([a-z]++)', 1))), 'other') end;

create function instant_of_milliseconds(
  text string comment 'whole milliseconds since 1970')
returns timestamp
comment 'The instant, up to the year 9999; null for another text.'
return timestamp_millis(if(text rlike '^[0-9]{1,15}\\z' and try_cast(text as bigint) <= 253402300799999, try_cast(text as bigint), null));

create function instant_of_seconds(
  text string comment 'seconds since 1970, with up to nine digits of fraction')
returns timestamp
comment 'The instant, up to the year 9999, without what is below a microsecond; null for another text.'
return timestamp_micros(if(
  text rlike '^[0-9]{1,12}(?:\\.[0-9]{1,9})?\\z' and try_cast(substring_index(text, '.', 1) as bigint) <= 253402300799,
  cast(cast(try_cast(text as decimal(21,9)) * 1000000 as decimal(38,9)) as bigint), null));

create function instant_of_microseconds(
  text string comment 'whole microseconds since 1970')
returns timestamp
comment 'The instant, up to the year 9999; null for another text.'
return timestamp_micros(if(text rlike '^[0-9]{1,18}\\z' and try_cast(text as bigint) <= 253402300799999999, try_cast(text as bigint), null));

create function instant_of_nanoseconds(
  text string comment 'whole nanoseconds since 1970')
returns timestamp
comment 'The instant, without what is below a microsecond; null for another text.'
return timestamp_micros(if(text rlike '^[0-9]{1,19}\\z', try_cast(text as bigint) div 1000, null));

create function instant_with_offset(
  text string comment 'a date and a time of day in the way of ISO 8601, with an offset from UTC or Z')
returns timestamp
comment 'The instant, up to the year 9999, without what is below a microsecond; null for another text, also for one without offset.'
return instant_within_years(try_cast(if(
    text rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]{1,9})? ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)\\z',
    regexp_replace(text, ' ?(Z|[+-][0-9]{2}):?((?:[0-9]{2})?)\\z', if(right(text, 1) = 'Z', 'Z', if(text rlike '[+-][0-9]{2}\\z', '$1:00', '$1:$2'))),
    null) as timestamp));

create function instant_within_years(
  instant timestamp comment 'an instant')
returns timestamp
comment 'The instant, if it is in the years 1 to 9999.'
return if(instant between timestamp'0001-01-01 00:00:00Z' and timestamp'9999-12-31 23:59:59.999999Z', instant, null);

create function number_of_lsn(
  text string comment 'the place in a log: hexadecimal numbers with a slash between two, or colons between three')
returns string
comment 'The place as one number, in the order of the log; null for another text.'
return cast(case
  when text rlike '^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}\\z' then cast(conv(split_part(text, '/', 1), 16, 10) as decimal(38,0)) * 4294967296
    + cast(conv(split_part(text, '/', 2), 16, 10) as decimal(38,0))
  when text rlike '^[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8}:[0-9A-Fa-f]{4}\\z' then
    (cast(conv(split_part(text, ':', 1), 16, 10) as decimal(20,0)) * 4294967296 + cast(conv(split_part(text, ':', 2), 16, 10) as decimal(20,0))) * 65536
    + cast(conv(split_part(text, ':', 3), 16, 10) as decimal(20,0)) end as string);

create function second_of_number(
  digits string comment 'seconds since 1970 in ten digits, and behind them a count within the second of up to five digits')
returns string
comment 'The seconds; null for another text.'
return if(digits rlike '^[1-9][0-9]{9,14}\\z', left(digits, 10), null);

create function number_within_second(
  digits string comment 'seconds since 1970 in ten digits, and behind them a count within the second of up to five digits')
returns string
comment 'The count; null for another text, and if there is none.'
return if(digits rlike '^[1-9][0-9]{9,14}\\z', nullif(substr(digits, 11), ''), null);

create function order_position(
  numbers array<string> comment 'the order numbers of a message, the most significant first')
returns array<decimal(38,0)>
comment 'The numbers up to the first that is not a whole number; none if one has more than 38 digits.'
return case
  when exists(numbers, n -> length(n) > 38 and n rlike '^-?[0-9]{39,}\\z') then array()
  else transform(
    slice(numbers, 1, coalesce(nullif(array_position(transform(numbers, n -> coalesce(n rlike '^-?[0-9]{1,38}\\z', false)), false), 0) - 1, size(numbers))),
    n -> try_cast(n as decimal(38,0))) end;

create function found_in_message(
  reason string comment 'why a message is refused',
  op_field string comment 'the field that says what a message is',
  op string comment 'the text of this field',
  statement string comment 'the statement of the message, if it has one')
returns string
comment 'What was found in a message that is refused; null for reasons that are not about its op or its rows.'
return case reason
  when 'no-op' then concat(op_field, ': missing')
  when 'unknown-op' then concat(op_field, ': "', op, '"')
  when 'no-row-image' then concat(op_field, ': "', op, '", without a row')
  when 'statement-without-rows' then concat(op_field, ': "', op, '", without a row; statement: ', statement)
  when 'row-not-an-object' then concat(op_field, ': "', op, '", with a row that is null or no object')
  when 'uneven-rows' then concat(op_field, ': "', op, '", with more images on the other side of the change than rows')
  when 'unknown-patch' then concat(op_field, ': "', op, '", with an update operator that is not known') end;

create function known_entries(
  entries map<string,string> comment 'entries of meta')
returns map<string,string>
comment 'The entries that say something: neither null nor an empty text nor the text null.'
return map_filter(entries, (entry, value) -> value not in ('', 'null'));
