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
