-- Values of two systems as texts that are equal if the values are. A text that is no value of its kind stays as it is.
{%- macro without_zeros(number) -%}
regexp_replace(regexp_replace(regexp_replace(regexp_replace({{ number }}, '^([+-]?[0-9]+)[.]0*$', '$1'), '([.][0-9]*[1-9])0+$', '$1'), '^[+]?(-?)0*(?=[0-9])', '$1'), '^-0$', '0')
{%- endmacro %}

create function canonical_number(value string comment 'a number as a text')
returns string
comment 'The number without a plus and without zeros that say nothing; also without an exponent, if 18 digits behind the point are enough.'
return case
  when value rlike '^[+-]?[0-9]+([.][0-9]*)?$' then {{ without_zeros('value') }}
  when cast(try_cast(value as decimal(38,18)) as double) = try_cast(value as double) then {{ without_zeros('cast(try_cast(value as decimal(38,18)) as string)') }}
  else value end;

create function canonical_double(value string comment 'a number as a text')
returns string
comment 'The shortest text of the nearest number of 64 bits; zero has no sign.'
return coalesce(cast(as_double(value) + double('0') as string), value);

create function canonical_float(value string comment 'a number as a text')
returns string
comment 'The shortest text of the nearest number of 32 bits; zero has no sign.'
return coalesce(cast(as_float(value) + float('0') as string), value);

create function canonical_boolean(value string comment 'a truth value as a text')
returns string
comment '`true` or `false`, also of 1 and 0, t and f, yes and no.'
return coalesce(cast(try_cast(value as boolean) as string), value);

create function canonical_time(value string comment 'a day, an instant, a wall clock or a time of day as a text')
returns string
comment 'Day and time of day, in UTC if the text has a zone, without zeros that say nothing; of a time of day, on the first day of 1970.'
return coalesce(cast(try_cast(if(value rlike '^[0-9]{1,2}:[0-9]{2}', concat('1970-01-01 ', value), value) as timestamp) as string), value);

create function canonical_bytes(value string comment 'bytes as a text: in base64, or in hexadecimal digits behind 0x or a backslash and an x')
returns string
comment 'The bytes in hexadecimal digits.'
return if(substr(value, 1, 2) in ('0x', '\\x') and substr(value, 3) rlike '^([0-9a-fA-F]{2})*$', upper(substr(value, 3)), coalesce(hex(try_to_binary(value, 'base64')), value));

create function canonical_document(value string comment 'a document in JSON')
returns string
comment 'The document without blanks, its names sorted.'
return coalesce(to_json(try_parse_json(value)), value);
