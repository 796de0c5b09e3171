-- Mirrors: what a change tells of a row, and texts in the types that columns have. Each gives null for what does not fit.
{%- set place = 'struct<rank int, seq ' ~ contract.seq ~ '>' -%}
{%- set zone = '(Z|[+-][0-9]{2}:?[0-9]{2})(\\\\[[^\\\\]]*\\\\])?$' -%}
{%- set in_micros = '[.][0-9]{6}[0-9]*[1-9]' %}

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

create function unfit_columns(
  told map<string,string> comment 'what is known of a row, as texts',
  missing array<string> comment 'the columns that are null in the row; nulls among them do not count')
returns map<string,string>
comment 'The texts of those of these columns that are not null: values that do not fit the types of their columns; null if there are none.'
return if(exists(missing, c -> told[c] is not null), map_filter(told, (c, v) -> v is not null and coalesce(array_contains(missing, c), false)), null);

create function times_emptied(
  emptied array<struct<rank int, generation int, phase int, event_time timestamp, arrival array<bigint>, at timestamp>> comment 'when a table was emptied',
  rank int comment 'the rank of the source that tells of a change: changes of a higher one come later',
  seq {{ contract.seq }} comment 'the place of the change among those of its source',
  event_time timestamp comment 'when the change was made, or null')
returns int
comment 'How often the table had been emptied before a change: order numbers of rows and of statements cannot be compared, so their times are, and if these do not differ, their arrival.'
return size(filter(emptied, e -> not case
  when e.rank <> rank then e.rank > rank
  when e.generation <> seq.generation then e.generation > seq.generation
  when e.phase <> seq.phase then e.phase > seq.phase
  when e.event_time <> event_time then e.event_time > event_time
  else e.arrival > seq.arrival end));

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
return if(value rlike '^[+-]?[0-9]{4,}-[0-9]{1,2}-[0-9]{1,2}( 00:00:00)?$', try_cast(value as date), null);

create function as_timestamp(value string comment 'a text')
returns timestamp
comment 'The instant, if the text has a zone and no digits after microseconds.'
return if(value rlike '{{ zone }}' and value not rlike '{{ in_micros }}', try_cast(regexp_replace(value, '\\[.*', '') as timestamp), null);

create function as_timestamp_ntz(value string comment 'a text')
returns timestamp_ntz
comment 'Day and time of day, if the text has no zone and no digits after microseconds.'
return if(value rlike '{{ zone }}|{{ in_micros }}', null, try_cast(value as timestamp_ntz));

create function as_binary(value string comment 'a text')
returns binary
comment 'The bytes of a text in base64.'
return try_to_binary(value, 'base64');
