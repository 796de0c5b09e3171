-- Images of rows: maps of column -> value, in which a column may be null or missing.

create function changed_columns(
  before map<string,string> comment 'the image before a change',
  after map<string,string> comment 'the image after it')
returns array<string>
comment 'The columns in which two images differ, or that only one of them has, sorted; null if an image is missing.'
return array_sort(filter(
  array_union(map_keys(before), map_keys(after)),
  c -> not (before[c] <=> after[c] and map_contains_key(before, c) = map_contains_key(after, c))));

create function columns_of(
  image map<string,string> comment 'an image',
  names array<string> comment 'the columns to take, such as those of a key')
returns map<string,string>
comment 'These columns of an image, in the order of the names; null if the image or one of the columns is missing, or if there are no names.'
return case when size(names) > 0 and forall(names, c -> map_contains_key(image, c))
  then map_from_arrays(names, transform(names, c -> image[c])) end;
