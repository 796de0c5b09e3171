-- Images of rows: maps of column -> value, in which a column may be null or missing.

create function changed_columns(
  before map<string,string> comment 'the image before a change',
  after map<string,string> comment 'the image after it',
  types map<string,string> comment 'the types of the columns of the table, or null')
returns array<string>
comment 'The columns in which two images differ, sorted: of all columns, or if both images lack some, of those that both have; null if only one lacks some, or is missing.'
return {{ changed_between('before', 'after', 'types') }};

create function completeness(
  image map<string,string> comment 'an image',
  other map<string,string> comment 'the other image of a change, or null',
  types map<string,string> comment 'the types of the columns of the table, or null',
  key_names array<string> comment 'the columns of the key, or null')
returns string
comment 'How much of a row an image holds: full, if it has each column that the types or the other image have; else key, if it has no other columns than those of the key, or partial; none if there is no image.'
return {{ how_complete('image', 'other', 'types', 'key_names') }};

create function changed_among(
  columns array<string> comment 'the columns that can differ, such as those of an image that holds only what has changed',
  before map<string,string> comment 'the image before a change',
  after map<string,string> comment 'the image after it')
returns array<string>
comment 'Those of these columns in which two images differ, or that only one of them has, sorted; null if an image is missing.'
return if(before is null or after is null, null, sort_array(if(size(columns) > 100,
  array_intersect(columns, concat({{ of_other_values('before', 'after') }},
    array_except(map_keys(before), map_keys(after)), array_except(map_keys(after), map_keys(before)))),
  filter(columns, c -> not before[c] <=> after[c]
    or map_keys(before) <> map_keys(after) and map_contains_key(before, c) <> map_contains_key(after, c)))));

{%- set both = 'map_concat(coalesce(other, map()), coalesce(image, map()))' %}

create function columns_of(
  image map<string,string> comment 'an image',
  other map<string,string> comment 'the other image of a change, or null',
  names array<string> comment 'the columns to take, such as those of a key')
returns map<string,string>
comment 'These columns, in the order of the names, each from the image, or if it is missing there, from the other; null if both lack one, or if there are no names.'
return case
  when size(names) = 1 and map_contains_key(image, get(names, 0)) then map(get(names, 0), image[get(names, 0)])
  when size(names) = 1 and map_contains_key(other, get(names, 0)) then map(get(names, 0), other[get(names, 0)])
  when size(names) > 100 then if(size(array_except(names, map_keys({{ both }}))) = 0,
    map_from_arrays(array_distinct(names), {{ values_at_once('map_from_arrays(names, names)', both) }}), null)
  when size(names) > 0 and forall(names, c -> coalesce(map_contains_key(image, c), false) or coalesce(map_contains_key(other, c), false))
    then map_from_arrays(names, transform(names, c -> if(coalesce(map_contains_key(image, c), false), image[c], other[c]))) end;

create function table_columns(
  members map<string,string> comment 'the members of a row, or of the types of its columns',
  types map<string,string> comment 'members that are known to be columns, or null',
  hidden array<string> comment 'names of members that are no columns; nulls among them do not count')
returns map<string,string>
comment 'The members that are columns of the table: all, if they are those that are known; else those that are not hidden. Of equal names the last counts.'
return case
  when map_keys(members) = map_keys(types) then members
  when size(array_except(map_keys(members), coalesce(hidden, array()))) < size(members)
    then map_filter(map_from_entries(map_entries(members)), (c, v) -> not coalesce(array_contains(hidden, c), false))
  else members end;

create function sent_columns(
  image map<string,string> comment 'an image',
  types map<string,string> comment 'the types of its columns, or null',
  type string comment 'a type, in lower case',
  texts array<string> comment 'texts that stand for a value of this type that was not sent; one that ends with * stands for all that begin so')
returns map<string,string>
comment 'The image without the columns of this type that have such a text.'
return if(contains(lower(array_join(map_values(types), ',')), type),
  map_filter(image, (c, v) ->
    (lower(types[c]) = type and exists(texts, t -> if(endswith(t, '*'), startswith(v, rtrim('*', t)), v = t))) is not true),
  image);

create function other_image(
  image map<string,string> comment 'an image that a change does not have',
  row map<string,string> comment 'the image that it has',
  hidden array<string> comment 'names of members that are no columns; nulls among them do not count')
returns string
comment 'The columns of the first image in JSON; null if it has none, or if both are the same.'
return if(size(image) > 0 and not map_entries(image) <=> map_entries(row), nullif(to_json(table_columns(image, null, hidden)), '{}'), null);

create function with_texts(
  image map<string,string> comment 'an image as it was sent',
  texts map<string,string> comment 'the canonical text of those values that needed to be read and could be')
returns map<string,string>
comment 'The image in canonical text, where a value that could not be read is as it was sent.'
return if(size(texts) > 0, map_concat(image, texts), image);

create function unread_columns(
  image map<string,string> comment 'an image as it was sent',
  readers map<string,string> comment 'the columns whose text may not be canonical, each with what reads it',
  texts map<string,string> comment 'the canonical text of those values that could be read')
returns array<string>
comment 'The columns whose values needed to be read and could not be; none if there is no image.'
return case
  when coalesce(size(texts) = size(readers), true) then array()
  when size(readers) > 100
    then coalesce(array_except(array_intersect(map_keys(readers), map_keys(map_filter(image, (c, v) -> v is not null))), map_keys(texts)), array())
  else coalesce(filter(array_except(map_keys(readers), map_keys(texts)), c -> image[c] is not null), array()) end;

create function names_joined(
  names array<string> comment 'names, or null')
returns string
comment 'The names, each once, sorted, with commas between them; null if there are none.'
return if(size(names) > 0, array_join(sort_array(array_distinct(names)), ','), null);

create function key_text(
  key map<string,string> comment 'the columns of a key')
returns string
comment 'The key as JSON with sorted names; null if there is no key.'
return if(size(key) > 1, to_json(map_from_entries(array_sort(map_entries(key)))), to_json(key));

create function key_columns(
  names array<string> comment 'the names of a key as they were sent',
  hidden array<string> comment 'names of members that are no columns; nulls among them do not count')
returns array<string>
comment 'The names that are columns, each once, in their order; null if there is no list of names.'
return if(size(names) = 1 and get(names, 0) is not null and not coalesce(array_contains(hidden, get(names, 0)), false),
  names,
  array_except(names, array_append(coalesce(hidden, array()), cast(null as string))));

create function listed_names(
  names array<string> comment 'what was sent, if it is a list of names',
  name string comment 'what was sent, as a text',
  is_other boolean comment 'whether it was a number, true or false')
returns array<string>
comment 'The names of a key: a list as it is, and a bare text as a list of one; null for any other value and for an empty text.'
return coalesce(names, if(left(name, 1) not in ('', '{') and not is_other, array(name), null));

-- A lambda has the values, so that Spark splits their text only for keys that are not in the images.
create function key_with_values(
  image map<string,string> comment 'an image',
  other map<string,string> comment 'the image that counts if the first is null',
  names array<string> comment 'the columns of a key',
  values array<string> comment 'the values of the key, in the order of the names')
returns map<string,string>
comment 'The key: each column from the image, or if it is missing there, from the values; null unless there are names, each once, and as many values.'
return get(transform(array(values), found ->
  if(size(names) > 0 and size(array_compact(array_distinct(names))) = size(names) and size(found) = size(names),
    map_from_arrays(names, transform(names, (c, i) -> if(map_contains_key(coalesce(image, other), c), coalesce(image, other)[c], get(found, i)))), null)), 0);

-- A lambda has the columns that were sent, so that Spark finds them once.
create function key_part(
  members map<string,string> comment 'the members of a row of which only the columns of the key count',
  types map<string,string> comment 'members that are known to be columns, or null',
  hidden array<string> comment 'names of members that are no columns; nulls among them do not count',
  unsent array<string> comment 'texts that stand for a value that was not sent, or null',
  names array<string> comment 'the columns of the key, or null')
returns map<string,string>
comment 'The columns of the key among those that were sent; without names, the columns that are not null; all that were sent if a column beyond the key has a value.'
return get(transform(array(map_filter(table_columns(members, types, hidden), (c, v) -> array_contains(unsent, v) is not true)), image ->
  if(exists(map_entries(image), e -> e.value is not null and not array_contains(names, e.key)), image,
    map_filter(image, (c, v) -> if(names is null, v is not null, array_contains(names, c))))), 0);

create function object_of_key(
  text string comment 'the key of a record of a topic, in JSON',
  roots array<string> comment 'the members that may hold the key columns, if they are objects')
returns map<string,string>
comment 'The members of the key, or of the first of its roots; null if the text is no object.'
return coalesce(
  get(filter(transform(roots, root -> from_json(from_json(text, 'map<string,string>')[root], 'map<string,string>')), found -> found is not null), 0),
  from_json(text, 'map<string,string>'));

create function members_of_key(
  text string comment 'the key of a record of a topic',
  roots array<string> comment 'the members that may hold the key columns, if they are objects',
  hidden array<string> comment 'names of members that are no columns; nulls among them do not count')
returns array<string>
comment 'The names of the members of the key, or of the first of its roots, that are columns, each once; null if the text is no object.'
return array_except(map_keys(object_of_key(text, roots)), coalesce(hidden, array()));
