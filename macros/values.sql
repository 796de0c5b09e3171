{#- How vendors write values, and the canonical text of each. A reader gives null for a text that it cannot read: such a value stays as sent. -#}

{#- Text in which MySQL's drivers put bytes one character each. -#}
{%- macro read_latin1(value) -%}
if({{ value }} rlike '[^\\x00-\\xff]', null, base64(encode({{ value }}, 'ISO-8859-1')))
{%- endmacro -%}

{#- Local time in a zone, as an instant. A zone with daylight saving has gaps: times that never were. -#}
{%- macro read_instant(value, zone) -%}
{%- if zone[0] in '+-' -%}
{%- set microseconds = (zone[1:3] | int * 60 + zone[4:6] | int) * 60000000 -%}
{%- set instant -%} timestamp_micros(unix_micros(try_cast(left({{ value }}, 19) as timestamp)) {{ '-' if zone[0] == '+' else '+' }} {{ microseconds }}) {%- endset -%}
{%- else -%}
{%- set instant -%} try_cast(concat(left({{ value }}, 19), {{ text(' ' ~ zone) }}) as timestamp) {%- endset -%}
{%- endif -%}
if({{ value }} rlike {{ is_datetime() }}
  {%- if '/' in zone %}
          and cast(from_utc_timestamp({{ instant }}, {{ text(zone) }}) as string) = left({{ value }}, 19)
  {%- endif -%},
          concat(replace(cast({{ instant }} as string), ' ', 'T'), rtrim('.', rtrim('0', substr({{ value }}, 20))), 'Z'), null)
{%- endmacro -%}

{#- Wall clock: the zeros behind a fraction of a second say nothing. -#}
{%- macro read_wall_clock(value) -%}
if({{ value }} rlike {{ is_wall_clock() }}, if(contains({{ value }}, '.'), rtrim('.', rtrim('0', {{ value }})), {{ value }}), null)
{%- endmacro -%}

{#- A decimal; an exponent is written out. -#}
{%- macro read_decimal(value) -%}
if({{ value }} rlike '^[+-]?(?:[0-9]++(?:\\.[0-9]*+)?|\\.[0-9]++)$', {{ value }}, {{ written_out(value) }})
{%- endmacro -%}

{#- An exponent of up to 10,000: sign, digits, and where the dot goes. -#}
{%- macro written_out(value) -%}
{%- set number = "'^([+-]?)([0-9]++)(?:\\\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$'" -%}
if({{ value }} rlike {{ number }} and abs(try_cast(regexp_extract({{ value }}, {{ number }}, 4) as int)) <= 10000,
  get(transform(
    array(named_struct(
      'sign', replace(regexp_extract({{ value }}, {{ number }}, 1), '+', ''),
      'digits', concat(regexp_extract({{ value }}, {{ number }}, 2), regexp_extract({{ value }}, {{ number }}, 3)),
      'dot', length(regexp_extract({{ value }}, {{ number }}, 2)) + try_cast(regexp_extract({{ value }}, {{ number }}, 4) as int))),
    n -> regexp_replace(concat(n.sign, case
      when n.dot <= 0 then concat('0.', repeat('0', -n.dot), n.digits)
      when n.dot >= length(n.digits) then concat(n.digits, repeat('0', n.dot - length(n.digits)))
      else concat(left(n.digits, n.dot), '.', substr(n.digits, n.dot + 1)) end), '^(-?)0+(?=[0-9])', '$1')), 0), null)
{%- endmacro -%}

{#- The labels of enum('a','b''s') or set(...). -#}
{%- macro labels(type) -%}
transform(regexp_extract_all(substr({{ type }}, instr({{ type }}, '(')), "'((?:[^']|'')*+)'", 1), l -> replace(l, "''", "'"))
{%- endmacro -%}

{#- An enum sent as the ordinal of its label, from 1; MySQL's 0 is the empty text. -#}
{%- macro read_ordinal(value) -%}
case
        when {{ value }} = '' or {{ value }} = '0' and size(v.labels) > 0 then ''
        when {{ value }} rlike '^[0-9]{1,9}$' and try_cast({{ value }} as int) between 1 and size(v.labels) then get(v.labels, try_cast({{ value }} as int) - 1)
        when array_contains(v.labels, {{ value }}) then {{ value }} end
{%- endmacro -%}

{#- A set sent as a mask of 64 bits without sign, its first label the lowest. -#}
{%- macro read_mask(value) -%}
{%- set mask -%}
cast(try_cast({{ value }} as decimal(20,0)) - if(try_cast({{ value }} as decimal(20,0)) > 9223372036854775807, 18446744073709551616, 0) as bigint)
{%- endset -%}
case
        when {{ value }} = '' or {{ value }} = '0' and size(v.labels) > 0 then ''
        when size(v.labels) > 0 and {{ value }} rlike '^[0-9]{1,20}$' and try_cast({{ value }} as decimal(20,0)) <= 18446744073709551615 then
          if(size(v.labels) < 64 and shiftrightunsigned({{ mask }}, size(v.labels)) <> 0, null,
            array_join(filter(v.labels, (l, bit) -> bit < 64 and getbit({{ mask }}, bit) = 1), ','))
        when {{ value }} rlike '[^0-9]' and forall(split({{ value }}, ','), l -> array_contains(v.labels, l)) then {{ value }} end
{%- endmacro -%}

{%- macro is_datetime() -%} '^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]++)?$' {%- endmacro -%}
{%- macro is_wall_clock() -%} '^(?:[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}|-?[0-9]++):[0-9]{2}:[0-9]{2}(?:\\.[0-9]++)?$' {%- endmacro -%}

{#- The canonical text of the value `v`. -#}
{%- macro read_value(plan) -%}
case v.reader
  {%- for reader in plan.readers %}
  when {{ text(reader) }} then {{
    read_latin1('v.sent') if reader == 'latin1' else
    read_instant('v.sent', plan.zone) if reader == 'instant' else
    read_wall_clock('v.sent') if reader == 'wall_clock' else
    read_decimal('v.sent') if reader == 'decimal' else
    read_ordinal('v.sent') if reader == 'ordinal' else
    read_mask('v.sent') }}
  {%- endfor %} end
{%- endmacro -%}
