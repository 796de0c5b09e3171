-- Mirrors: what a change tells of a row, and texts in the types that columns have. Each gives null for what does not fit.
{%- set came = 'struct<told_at timestamp, arrival array<bigint>, log string>' -%}
{%- set effect = 'struct<nth int, rank int, called int, earlier int, generation int, position array<decimal(38,0)>, numbered_in string, sent_at timestamp, log string, arrival array<bigint>, at timestamp, happened_at timestamp, empties boolean, told map<string,string>, renamed map<string,string>>' -%}
{#- What a lambda must have as it is: it cannot call a function with its variable. -#}
{%- macro sorted_number(n) -%} if({{ n }} < 0, concat('-', lpad(cast(100 - length(cast({{ n }} as string)) as string), 2, '0'), translate(substr(cast({{ n }} as string), 2), '0123456789', '9876543210')), concat(lpad(cast(length(cast({{ n }} as string)) as string), 2, '0'), cast({{ n }} as string))) {%- endmacro -%}
{%- macro sorted_numbers(numbers) -%} concat(array_join(transform({{ numbers }}, n -> {{ sorted_number('n') }}), ','), '!') {%- endmacro -%}
{#- Whether a statement came after a change, or after the beginning of a stretch. -#}
{%- macro came_later(e, one) -%} case when {{ e }}.log <> {{ one }}.log and {{ e }}.sent_at <> {{ one }}.told_at then {{ e }}.sent_at > {{ one }}.told_at else {{ e }}.arrival > {{ one }}.arrival end {%- endmacro -%}
{%- set day = '[+-]?[0-9]{4,}-[0-9]{1,2}-[0-9]{1,2}' -%}
{%- set time_of_day = '[ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.][0-9]*)?)?' -%}
{%- set zone = ' ?(Z|[+-][0-9]{2}(:?[0-9]{2})?)' -%}
{%- set beyond_micros = '[.][0-9]{6}[0-9]*[1-9]' %}

create function named_as(
  image map<string,string> comment 'an image',
  names map<string,string> comment 'names in small letters, each with the name that it stands for')
returns map<string,string>
comment 'The image with these names, whatever the case of its letters; other names as they are.'
return if(forall(map_keys(image), c -> coalesce(names[lower(c)] = c, true)),
  image,
  map_from_entries(transform(map_entries(image), c -> struct(coalesce(names[lower(c.key)], c.key), c.value))));

create function told_columns(
  image map<string,string> comment 'the image after a change',
  removed array<string> comment 'columns that the change has removed, among others, or null')
returns map<string,string>
comment 'What a change tells of single columns: its image, and null for columns that it has removed.'
return if(size(removed) > 0, map_concat(map_from_arrays(removed, transform(removed, c -> cast(null as string))), image), image);

create function known_columns(
  whole map<string,string> comment 'the newest image of a whole row, or null',
  since string comment 'its place in the order of changes, or null',
  parts array<struct<place string, told map<string,string>>> comment 'what other changes tell of single columns, in any order')
returns map<string,string>
comment 'What is known of a row: its newest image, with what later changes tell of single columns over it.'
return if(size(parts) = 0,
  whole,
  aggregate(
    array_sort(filter(parts, p -> coalesce(p.place > since, true)), (a, b) -> case when a.place < b.place then -1 when a.place > b.place then 1 else 0 end),
    coalesce(whole, map()),
    (image, p) -> map_concat(image, p.told)));

create function unfit_then(
  before map<string,string> comment 'the values that did not fit, or null',
  told map<string,string> comment 'the columns that a change tells, among others',
  missing array<string> comment 'the columns that are null in the row after it; nulls among them do not count')
returns map<string,string>
comment 'The values that do not fit after a change that tells single columns; null if there are none.'
return get(filter(
  array(map_concat(map_filter(coalesce(before, map()), (c, v) -> not coalesce(map_contains_key(told, c), false)),
    coalesce(unfit_columns(told, missing), map()))),
  m -> size(m) > 0), 0);

create function unfit_columns(
  told map<string,string> comment 'what is known of a row, as texts',
  missing array<string> comment 'the columns that are null in the row; nulls among them do not count')
returns map<string,string>
comment 'The texts of those of these columns that are not null: values that do not fit the types of their columns; null if there are none.'
return if(exists(missing, c -> told[c] is not null), map_filter(told, (c, v) -> v is not null and coalesce(array_contains(missing, c), false)), null);

create function untold_columns(
  unlisted array<string> comment 'columns that the message with the newest image of a row does not name, or null; with the empty name, if it does not name all that the table has',
  told map<string,string> comment 'what is known of the row')
returns array<string>
comment 'Those of these columns of which nothing is known, with the empty name; null if there are none.'
return get(filter(array(array_except(unlisted, coalesce(map_keys(told), array()))), c -> size(array_remove(c, '')) > 0), 0);

create function effects_after(
  effects array<{{ effect }}> comment 'what statements did to a table',
  rank int comment 'the number of the table that a change is of, among those of a mirror',
  called int comment 'under which of its names the table had the change: the last one is 0, the one before it 1',
  generation int comment 'the load that the change belongs to',
  phase int comment '0 for a loaded row that may come late',
  numbered_in string comment 'the log in which the change is numbered, or null',
  position array<decimal(38,0)> comment 'its numbers',
  stretch int comment 'the stretch of its row that it is in',
  begins array<{{ came }}> comment 'how the changes came with which new stretches of the row begin',
  came {{ came }} comment 'how the change came',
  changed_at timestamp comment 'when the change was made, or null')
returns array<int>
comment 'Which of the statements come after a change: by their numbers, where no stretch lies between and both are numbered in one log, else as they came; where one of both has no numbers, a change that was made before a statement and comes after it is told again. A statement comes before changes with the same numbers; where one of both has only the first of the numbers of the other, they do not tell. What a statement does to a table under a later name comes after the changes that it had under an earlier one. One of a table of a later source comes after all changes of earlier ones.'
return transform(
  filter(effects, e -> case
    when e.rank <> rank then e.earlier > rank
    when e.called >= 0 and e.called <> called then e.called < called
    when e.generation <> generation then e.generation > generation
    when phase = 0 then size(e.arrival) > 0
    when size(filter(begins, b -> {{ came_later('e', 'b') }})) <> stretch then size(filter(begins, b -> {{ came_later('e', 'b') }})) > stretch
    when (e.numbered_in = numbered_in or '' in (e.numbered_in, numbered_in))
      and (size(e.position) = size(position) or slice(e.position, 1, size(position)) <> slice(position, 1, size(e.position))) then e.position > position
    else {{ came_later('e', 'came') }} or coalesce(size(e.position) * size(position) = 0 and changed_at < e.happened_at, false) end),
  e -> e.nth);

create function sorted_number(n bigint comment 'a whole number')
returns string
comment 'The number as a text that sorts as the numbers do: its sign, how many digits it has, and these.'
return {{ sorted_number('n') }};

create function load_text(
  rank int comment 'the number of the table that a change is of, among those of a mirror',
  generation int comment 'the load that the change belongs to',
  phase int comment '0 for a loaded row that may come late, else 1')
returns string
comment 'The most significant part of the place of a change, as a text that sorts so.'
return concat_ws(' ', sorted_number(rank), sorted_number(generation), cast(phase as string));

create function arrival_text(
  told_at timestamp comment 'when the change was sent, or another before it in its log, or null',
  arrival array<bigint> comment 'its place in its log',
  row_index int comment 'its place in its message',
  log string comment 'the log, or null')
returns string
comment 'How a change came, as a text that sorts so.'
return concat_ws(' ', coalesce(sorted_number(unix_micros(told_at)), ''), {{ sorted_numbers('arrival') }}, sorted_number(row_index), coalesce(log, ''));

create function place_text(
  load string comment 'the load that a change belongs to',
  stretch int comment 'the stretch of its row that it is in',
  numbered_in string comment 'the log in which it is numbered, or null',
  position array<decimal(38,0)> comment 'its numbers',
  is_loaded boolean comment 'whether a load told it',
  arrived string comment 'how it came')
returns string
comment 'The place of a change among those of its row, as a text that sorts so. A loaded row comes before changes with the same numbers.'
return concat_ws(' ', load, sorted_number(stretch), coalesce(concat('+', replace(numbered_in, ' ', '_')), '-'), {{ sorted_numbers('position') }},
  if(numbered_in is not null and is_loaded, '0', '1'), arrived);

create function place_after(
  place string comment 'the place of a new change of a row: its stretches are counted from the first new change',
  first string comment 'the place of the new change of the row that came first',
  known string comment 'the place up to which the row is known, or null')
returns string
comment 'The place among all changes of the row.'
return if(known is null or substring_index(known, ' ', 3) <> substring_index(place, ' ', 3),
  place,
  concat_ws(' ',
    substring_index(place, ' ', 3),
    sorted_number(
      cast(substr(split_part(place, ' ', 4), 3) as int) + cast(substr(split_part(known, ' ', 4), 3) as int)
      + if(split_part(first, ' ', 5) = split_part(known, ' ', 5) or (split_part(first, ' ', 5) = '+' and split_part(known, ' ', 5) <> '-'), 0, 1)),
    substr(place, length(substring_index(place, ' ', 4)) + 2)));

create function is_in_doubt(
  first string comment 'the place of the new change of a row that came first',
  newest string comment 'the last place of the new changes',
  goes_back_to timestamp comment 'the earliest time of those new changes that have no numbers, or null',
  known string comment 'the place up to which the row is known, or null',
  known_at timestamp comment 'when that change was made, or null')
returns boolean
comment 'Whether all changes of the row must be looked at, since new ones may have come before those that are known, or be told again.'
return case
  when known is null then false
  when substring_index(newest, ' ', 4) <> substring_index(first, ' ', 4) then true
  when substring_index(first, ' ', 3) <> substring_index(known, ' ', 3) then first < known
  when split_part(known, ' ', 4) = '010' and split_part(first, ' ', 5) <> '-' and split_part(first, ' ', 5) in (split_part(known, ' ', 5), '+') then false
  else concat(split_part(first, ' ', 8), ' ', split_part(first, ' ', 9)) <= concat(split_part(known, ' ', 8), ' ', split_part(known, ' ', 9))
    or coalesce(goes_back_to < known_at, false)
    or (split_part(first, ' ', 5) <> '-' and split_part(known, ' ', 4) <> '010' and split_part(first, ' ', 5) <> split_part(known, ' ', 5)) end;

create function as_double(value string comment 'a text')
returns double
comment 'The number, if it is not too large.'
return if(abs(try_cast(value as double)) = double('infinity') and value not rlike '(?i)inf', null, try_cast(value as double));

create function as_float(value string comment 'a text')
returns float
comment 'The number, if it is not too large.'
return if(abs(try_cast(value as float)) = float('infinity') and value not rlike '(?i)inf', null, try_cast(value as float));

create function as_date(value string comment 'a text')
returns date
comment 'The day, if there is no time of day beside it, or midnight.'
return if(value rlike '^{{ day }}( 00:00:00)?$', try_cast(value as date), null);

create function as_timestamp(value string comment 'a text')
returns timestamp
comment 'The instant, if the text has a day, a time of day and a zone, and no digits after microseconds.'
return if(value rlike '^{{ day }}{{ time_of_day }}{{ zone }}(\\[[^\\]]*\\])?$' and value not rlike '{{ beyond_micros }}',
  try_cast(regexp_replace(regexp_replace(value, '\\[.*', ''), '([+-][0-9]{2})$', '$1:00') as timestamp), null);

create function as_timestamp_ntz(value string comment 'a text')
returns timestamp_ntz
comment 'Day and time of day, midnight if there is none, if the text has no zone and no digits after microseconds.'
return if(value rlike '^{{ day }}({{ time_of_day }})?$' and value not rlike '{{ beyond_micros }}', try_cast(value as timestamp_ntz), null);

create function as_binary(value string comment 'a text')
returns binary
comment 'The bytes of a text in base64.'
return try_to_binary(value, 'base64');
