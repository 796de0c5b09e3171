-- Mirrors: what a change tells of a row, and texts in the types that columns have. Each gives null for what does not fit.
{%- set place = 'struct<rank int, seq ' ~ contract.seq ~ '>' -%}
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
  since {{ place }} comment 'its place in the order of changes, or null',
  parts array<struct<place {{ place }}, told map<string,string>>> comment 'what other changes tell of single columns, in any order')
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
  now map<string,string> comment 'those of its values that do not fit, or null')
returns map<string,string>
comment 'The values that do not fit after a change that tells single columns; null if there are none.'
return get(filter(
  array(map_concat(map_filter(coalesce(before, map()), (c, v) -> not coalesce(map_contains_key(told, c), false)), coalesce(now, map()))),
  m -> size(m) > 0), 0);

create function unfit_columns(
  told map<string,string> comment 'what is known of a row, as texts',
  missing array<string> comment 'the columns that are null in the row; nulls among them do not count')
returns map<string,string>
comment 'The texts of those of these columns that are not null: values that do not fit the types of their columns; null if there are none.'
return if(exists(missing, c -> told[c] is not null), map_filter(told, (c, v) -> v is not null and coalesce(array_contains(missing, c), false)), null);

create function emptied_after(
  times array<struct<rank int, earlier int, generation int, phase int, event_time timestamp, log string, sent_at timestamp, arrival array<bigint>, at timestamp>> comment 'when a table was emptied, and below which rank other sources were emptied with it',
  rank int comment 'the rank of the source that tells of a change: changes of a higher one come later',
  seq {{ contract.seq }} comment 'the place of the change among those of its source',
  event_time timestamp comment 'when the change was made, or null',
  log string comment 'the partition of a topic that has its message, or null',
  sent_at timestamp comment 'when its message was sent, or null')
returns array<timestamp>
comment 'When the table was emptied after a change: order numbers of rows and of statements cannot be compared, so their times are. If these do not differ, messages of one partition, or of files, are compared by their arrival, others by when they were sent; what then is even comes before the change.'
return transform(
  filter(times, e -> case
    when e.rank <> rank then e.earlier > rank
    when e.generation <> seq.generation then e.generation > seq.generation
    when e.phase <> seq.phase then e.phase > seq.phase
    when e.event_time <> event_time then e.event_time > event_time
    when e.log <> log then coalesce(e.sent_at > sent_at, false)
    else e.arrival > seq.arrival end),
  e -> e.at);

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
