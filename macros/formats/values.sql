{#- How vendors write values, and the canonical text of each. A reader gives null for a text that it cannot read: such a value stays as sent. -#}

{#- Any text. -#}
{%- macro read_as_sent(value, zone) -%} {{ value }} {%- endmacro -%}

{#- Bytes that were put into a text, one character for each. -#}
{%- macro read_latin1(value, zone) -%}
if({{ value }} rlike '[^\\x00-\\xff]', null, base64(encode({{ value }}, 'ISO-8859-1')))
{%- endmacro -%}

{#- Local time in a zone, as an instant. -#}
{%- macro read_instant(value, zone) -%}
if({{ value }} rlike {{ is_datetime() }}{% if zone.may_skip %} and {{ was_there(value, zone) }}{% endif %}, {{ instant_text(in_zone('left(' ~ value ~ ', 19)', zone), value) }}, null)
{%- endmacro -%}

{#- An instant of whole seconds with the fraction that follows the 19 characters of a wall clock, as text. -#}
{%- macro instant_text(instant, value) -%}
concat(replace(cast({{ instant }} as string), ' ', 'T'), {{ fraction("substr(" ~ value ~ ", 20)") }}, 'Z')
{%- endmacro -%}

{#- A fraction of a second `.f`, without the zeros at its end. -#}
{%- macro fraction(value) -%} rtrim('.', rtrim('0', {{ value }})) {%- endmacro -%}

{#- A wall clock followed by an offset or the name of a zone; without either it is local time. In iso_zoned, seconds that are zero may be missing. -#}
{%- macro read_zoned(value, zone) -%} {{ zoned_of(value, zone, '') }} {%- endmacro -%}
{%- macro read_iso_zoned(value, zone) -%} {{ zoned_of(value, zone, '?') }} {%- endmacro -%}

{#- Names of three letters are mostly abbreviations that stand for several zones, such as CST. -#}
{%- macro zoned_of(value, zone, seconds) -%}
{%- set zone_name = "(?:UTC|GMT|UCT|PRC|ROC|ROK|[CEMW]ET|(?![A-Z]{3}\\\\z)[A-Za-z_][A-Za-z0-9_+:-]*(?:/[A-Za-z0-9_+-]+)*)" -%}
{%- set parts -%}
'^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2})(?:(:[0-9]{2})(\\.[0-9]+)?){{ seconds }}(?: ?(Z|[+-][0-9]{2}(?::[0-9]{2}:[0-9]{2}|:?[0-9]{2})?)| ({{ zone_name }}))?\\z'
{%- endset -%}
if({{ value }} rlike {{ parts }},
  get(transform(
    array(split(regexp_replace({{ value }}, {{ parts }}, '$1 $2$3:00,$4,$5,$6'), ',')),
    t -> get(transform(
      array(named_struct('clock', left(get(t, 0), 19), 'fraction', {{ fraction('get(t, 1)') }}, 'offset', get(t, 2), 'zone', get(t, 3))),
      t -> case
        when t.offset <> '' then concat(replace(cast({% call in_years() %}try_cast(concat(t.clock, {{ offset('t.offset') }}) as timestamp){% endcall %} as string), ' ', 'T'), t.fraction, 'Z')
        when t.zone = '' then {{ zoned_without(zone) }}
        when cast(from_utc_timestamp(try_cast(concat(t.clock, ' ', t.zone) as timestamp), t.zone) as string) = t.clock
        then concat(replace(cast({% call in_years() %}try_cast(concat(t.clock, ' ', t.zone) as timestamp){% endcall %} as string), ' ', 'T'), t.fraction, 'Z[', t.zone, ']') end), 0)), 0), null)
{%- endmacro -%}

{#- +08 and +0800 as +08:00; Z, and an offset with seconds, as clocks had before there were zones, as it is. -#}
{%- macro offset(zone) -%}
if({{ zone }} = 'Z' or length({{ zone }}) > 6, {{ zone }}, concat(left({{ zone }}, 3), ':', if(length({{ zone }}) > 3, right({{ zone }}, 2), '00')))
{%- endmacro -%}

{%- macro zoned_without(zone) -%}
{%- if not zone -%} if({{ is_possible('t.clock') }}, concat(t.clock, t.fraction), null)
{%- else -%} concat(replace(cast({{ local_time('t.clock', zone, in_zone('t.clock', zone)) }} as string), ' ', 'T'), t.fraction, 'Z')
{%- endif -%}
{%- endmacro -%}

{#- Seconds since 1970, with up to nine digits of fraction. -#}
{%- macro read_epoch_s(value, zone) -%}
{%- set number -%} try_cast({{ value }} as decimal(23,9)) {%- endset -%}
if({{ value }} rlike '^-?[0-9]{1,12}(?:\\.[0-9]{1,9})?\\z' and {{ number }} >= -62135596800 and {{ number }} < 253402300800,
  concat(replace(cast(timestamp_seconds(cast(floor({{ number }}) as bigint)) as string), ' ', 'T'),
    {{ fraction("substr(cast(" ~ number ~ " - floor(" ~ number ~ ") as string), 2)") }}, 'Z'), null)
{%- endmacro -%}

{#- Whole milliseconds since 1970, and the same as a wall clock of a zone. -#}
{%- macro read_epoch_ms(value, zone) -%}
if({{ is_milliseconds(value) }}, concat(replace(cast(timestamp_millis(try_cast({{ value }} as bigint)) as string), ' ', 'T'), 'Z'), null)
{%- endmacro -%}
{%- macro read_epoch_ms_datetime(value, zone) -%} if({{ is_milliseconds(value) }}, {{ clock_of(value, zone) }}, null) {%- endmacro -%}
{%- macro read_epoch_ms_date(value, zone) -%} if({{ is_milliseconds(value) }}, left({{ clock_of(value, zone) }}, 10), null) {%- endmacro -%}
{%- macro read_epoch_ms_time(value, zone) -%} if({{ is_milliseconds(value) }}, substr({{ clock_of(value, zone) }}, 12), null) {%- endmacro -%}

{%- macro is_milliseconds(value) -%}
{{ value }} rlike '^-?[0-9]{1,15}\\z' and try_cast({{ value }} as bigint) between -62135596800000 and 253402300799999
{%- endmacro -%}

{%- macro clock_of(value, zone) -%}
cast({% call in_years() %}from_utc_timestamp(timestamp_millis(try_cast({{ value }} as bigint)), {{ text(zone.name) }}){% endcall %} as string)
{%- endmacro -%}

{#- A wall clock, and a time of day, as the time that has passed on that clock since 1970-01-01 00:00:00, or since midnight; a date as its days. -#}
{%- macro read_clock_ms(value, zone) -%} {{ clock_of_count(value, 3) }} {%- endmacro -%}
{%- macro read_clock_us(value, zone) -%} {{ clock_of_count(value, 6) }} {%- endmacro -%}
{%- macro read_clock_ns(value, zone) -%} {{ clock_of_count(value, 9) }} {%- endmacro -%}
{%- macro read_day_ms(value, zone) -%} {{ time_of_count(value, 3) }} {%- endmacro -%}
{%- macro read_day_us(value, zone) -%} {{ time_of_count(value, 6) }} {%- endmacro -%}
{%- macro read_day_ns(value, zone) -%} {{ time_of_count(value, 9) }} {%- endmacro -%}
{%- macro read_epoch_days(value, zone) -%}
if({{ value }} rlike '^-?[0-9]{1,7}\\z' and try_cast({{ value }} as int) between -719162 and 2932896,
  cast(date_from_unix_date(try_cast({{ value }} as int)) as string), null)
{%- endmacro -%}

{#- `digits`: how many digits of the number are the fraction of a second. The ends of 64 bits stand for infinity, as drivers have it. -#}
{%- macro clock_of_count(value, digits) -%}
{%- set seconds = "floor(try_cast(" ~ value ~ " as decimal(20,0)) / " ~ 10 ** digits ~ ")" -%}
if({{ value }} rlike '^-?[0-9]{1,{{ 12 + digits }}}\\z'{% if digits == 9 %} and not {{ value }} rlike '^(?:9223372036854775807|-9223372036854775808|9223372036825200000|-9223372036832400000)\\z'{% endif %}
  and {{ seconds }} between -62135596800 and 253402300799,
  concat(cast(timestamp_seconds(cast({{ seconds }} as bigint)) as string),
    {{ fraction("concat('.', lpad(cast(pmod(try_cast(" ~ value ~ " as decimal(20,0)), " ~ 10 ** digits ~ ") as string), " ~ digits ~ ", '0'))") }}), null)
{%- endmacro -%}
{%- macro time_of_count(value, digits) -%}
{%- set count = "try_cast(ltrim('-', " ~ value ~ ") as bigint)" -%}
{%- set seconds = count ~ " div " ~ 10 ** digits -%}
if({{ value }} rlike '^-?[0-9]{1,{{ 7 + digits }}}\\z',
  concat(if({{ value }} < '0' and {{ count }} > 0, '-', ''), if({{ seconds }} < 36000, '0', ''), {{ seconds }} div 3600, ':',
    lpad(cast({{ seconds }} div 60 % 60 as string), 2, '0'), ':', lpad(cast({{ seconds }} % 60 as string), 2, '0'),
    {{ fraction("concat('.', lpad(cast(" ~ count ~ " % " ~ 10 ** digits ~ " as string), " ~ digits ~ ", '0'))") }}), null)
{%- endmacro -%}

{#- Milliseconds since 1970, and after the dot all nanoseconds of the second, as a wall clock of a zone. The milliseconds of the second are zero, or
    say the same as the nanoseconds: which of two that contradict each other is right, nobody knows. -#}
{%- macro read_epoch_ms_nanos(value, zone) -%}
{%- set milliseconds = "substring_index(" ~ value ~ ", '.', 1)" -%}
{%- set nanos = "substr(" ~ value ~ ", instr(" ~ value ~ ", '.'))" -%}
if({{ is_milliseconds(milliseconds) }} and {{ value }} rlike '^[^.]++(?:\\.[0-9]{9})?\\z',
  get(transform(array({{ clock_of(milliseconds, zone) }}), clock -> case
    when not contains({{ value }}, '.') then clock
    when substr(clock, 20) in ('', {{ fraction("left(" ~ nanos ~ ", 4)") }}) then concat(left(clock, 19), {{ fraction(nanos) }}) end), 0), null)
{%- endmacro -%}

{#- Local times with a T between date and time, and without seconds where these are zero. -#}
{%- macro read_iso_datetime(value, zone) -%}
if({{ value }} rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\\.[0-9]++)?)?\\z'
  and {{ is_possible("replace(" ~ value ~ ", 'T', ' ')") }},
  concat(replace(left({{ value }}, 16), 'T', ' '), if(length({{ value }}) = 16, ':00', substr({{ value }}, 17, 3)), {{ fraction("substr(" ~ value ~ ", 20)") }}), null)
{%- endmacro -%}
{%- macro read_iso_time(value, zone) -%}
if({{ value }} rlike '^-?[0-9]++:[0-5][0-9]\\z', concat({{ value }}, ':00'), {{ read_wall_clock(value, zone) }})
{%- endmacro -%}
{%- macro read_iso_date(value, zone) -%}
if({{ value }} rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T00:00(?::00)?)?\\z'
  and (length({{ value }}) = 10 or {{ is_possible("replace(" ~ value ~ ", 'T', ' ')") }}), left({{ value }}, 10), null)
{%- endmacro -%}

{#- Bytes in base64; the same, as one unsigned number of up to 64 bits; bytes in pairs of hexadecimal digits, which may have \x before them, or with `hex_0x` have 0x. -#}
{%- macro read_base64(value, zone) -%} if({{ is_base64(value) }}, base64(unbase64({{ value }})), null) {%- endmacro -%}
{%- macro read_base64_text(value, zone) -%}
if({{ is_base64(value) }} and is_valid_utf8(cast(unbase64({{ value }}) as string)), cast(unbase64({{ value }}) as string), null)
{%- endmacro -%}
{%- macro read_base64_bits(value, zone) -%}
if({{ is_base64(value) }} and length({{ value }}) <= 12 and length(unbase64({{ value }})) <= 8, coalesce(conv(hex(unbase64({{ value }})), 16, 10), '0'), null)
{%- endmacro -%}
{%- macro is_base64(value) -%} {{ value }} rlike '^[A-Za-z0-9+/]*+={0,2}\\z' and length({{ value }}) % 4 = 0 {%- endmacro -%}
{%- macro read_hex(value, zone) -%}
if({{ value }} rlike '^(?:\\\\x)?[0-9A-Fa-f]*+\\z' and length({{ value }}) % 2 = 0, base64(unhex(ltrim('\\\\x', {{ value }}))), null)
{%- endmacro -%}
{%- macro read_hex_0x(value, zone) -%}
if({{ value }} rlike '^0x[0-9A-Fa-f]*+\\z' and length({{ value }}) % 2 = 0, base64(unhex(substr({{ value }}, 3))), null)
{%- endmacro -%}

{#- Bits that begin with the lowest: bytes in base64 in the order from the last to the first. -#}
{%- macro read_base64_little_endian(value, zone) -%}
if({{ is_base64(value) }} and length({{ value }}) <= 12 and length(unbase64({{ value }})) <= 8,
  coalesce(conv(array_join(reverse(regexp_extract_all(hex(unbase64({{ value }})), '..', 0)), ''), 16, 10), '0'), null)
{%- endmacro -%}

{#- A decimal as the bytes of a whole number and the count of digits behind the point, which stands in brackets in the type, or beside the bytes. -#}
{%- macro read_unscaled(value, zone) -%} {{ unscaled(value, "regexp_extract(reader.value, '[,(](-?[0-9]{1,4})\\\\)', 1)") }} {%- endmacro -%}
{%- macro read_variable_scale(value, zone) -%}
{{ unscaled("if(" ~ value ~ " rlike '\"value\"\\\\s*:\\\\s*\"', get_json_object(" ~ value ~ ", '$.value'), null)", "get_json_object(" ~ value ~ ", '$.scale')") }}
{%- endmacro -%}

{#- The number is in two's complement, its highest byte first. The bits of a negative one are turned around, which gives its digits less one. -#}
{%- macro unscaled(value, scale) -%}
if({{ is_base64(value) }} and length({{ value }}) between 4 and 1000 and abs(try_cast({{ scale }} as int)) <= 1000, get(transform(transform(
    array(named_struct('bytes', hex(unbase64({{ value }})), 'scale', try_cast({{ scale }} as int))),
    n -> if(n.bytes < '8',
      named_struct('sign', '', 'digits', {{ digits_of_bytes('n.bytes', 0) }}, 'scale', n.scale),
      named_struct('sign', '-', 'digits', {{ digits_of_bytes("translate(n.bytes, '0123456789ABCDEF', 'FEDCBA9876543210')", 1) }}, 'scale', n.scale))),
    n -> concat(n.sign, case
      when n.scale <= 0 then concat(n.digits, if(n.digits = '0', '', repeat('0', -n.scale)))
      when n.scale < length(n.digits) then concat(left(n.digits, length(n.digits) - n.scale), '.', right(n.digits, n.scale))
      else concat('0.', lpad(n.digits, n.scale, '0')) end)), 0), null)
{%- endmacro -%}

{#- The decimal digits of bytes in hexadecimal, and `more`: up to eight bytes at once; of more, three at a time are added to limbs of nine digits,
    the lowest first. -#}
{%- macro digits_of_bytes(bytes, more) -%}
if(length({{ bytes }}) <= 16, cast(cast(conv({{ bytes }}, 16, 10) as decimal(20,0)) + {{ more }} as string),
      ltrim('0', array_join(reverse(transform(aggregate(
        array_append(regexp_extract_all(lpad({{ bytes }}, cast(ceil(length({{ bytes }}) / 6) * 6 as int), '0'), '.{6}', 0), {{ "'+'" if more else "''" }}),
        array(0L),
        (limbs, part) -> aggregate(array_append(limbs, 0L),
          named_struct('limbs', cast(array() as array<bigint>),
            'carry', case part when '' then 0L when '+' then 1L else cast(conv(part, 16, 10) as bigint) end),
          (made, limb) -> named_struct(
            'limbs', array_append(made.limbs, (limb * if(length(part) = 6, 16777216L, 1L) + made.carry) % 1000000000),
            'carry', (limb * if(length(part) = 6, 16777216L, 1L) + made.carry) div 1000000000)).limbs),
        limb -> lpad(cast(limb as string), 9, '0'))), '')))
{%- endmacro -%}

{%- macro read_hex_bits(value, zone) -%} if({{ value }} rlike '^[0-9A-Fa-f]{1,16}\\z', conv({{ value }}, 16, 10), null) {%- endmacro -%}

{#- What a function over the whole image has read. -#}
{%- macro read_java_bytes(value, zone) -%} java_bytes[reader.key] {%- endmacro -%}
{%- macro read_escaped_bytes(value, zone) -%} escaped_bytes[reader.key] {%- endmacro -%}

{#- Wall clock: the zeros at the end of a fraction of a second say nothing. -#}
{%- macro read_wall_clock(value, zone) -%}
if({{ value }} rlike {{ is_clock_of_any_month('') }}
  or {{ value }} rlike {{ is_wall_clock() }} and try_cast(left({{ value }}, 19) as timestamp_ntz) is not null,
  if(contains({{ value }}, '.'), rtrim('.', rtrim('0', {{ value }})), {{ value }}), null)
{%- endmacro -%}

{#- A date of four digits, two and two that a calendar has, or whose month or day is zero, as some databases keep it. -#}
{%- macro read_date(value, zone) -%}
if({{ value }} rlike '^[0-9]{4}-(?!1[3-9])[01][0-9]-(?:[01][0-9]|2[0-8])\\z'
  or {{ value }} rlike '^[0-9]{4}-[0-9]{2}-(?:29|3[01])\\z' and try_cast({{ value }} as date) is not null, {{ value }}, null)
{%- endmacro -%}

{#- Dates and wall clocks with a T and a Z that say nothing: no zone belongs to them. -#}
{%- macro read_date_z(value, zone) -%} {{ read_date("rtrim('Z', " ~ value ~ ')') }} {%- endmacro -%}
{%- macro read_clock_z(value, zone) -%} {{ read_wall_clock("replace(rtrim('Z', " ~ value ~ "), 'T', ' ')") }} {%- endmacro -%}

{#- Whether a clock can show this text, which looks like a wall clock. Hours alone may pass 24; some databases keep days and months that are zero. -#}
{%- macro is_possible(value) -%}
({{ value }} rlike {{ is_clock_of_any_month('?') }} or try_cast(left({{ value }}, 19) as timestamp_ntz) is not null)
{%- endmacro -%}

{#- A time of day followed by its offset, which stays: without a day, it is no instant. -#}
{%- macro read_zoned_time(value, zone) -%}
{%- set parts = "'^((?:[01][0-9]|2[0-4]):[0-5][0-9]:[0-5][0-9])(\\\\.[0-9]++)?((?:Z|[+-][0-9]{2}(?::?[0-9]{2}){0,2})?)\\\\z'" -%}
if({{ value }} rlike {{ parts }},
  concat(regexp_extract({{ value }}, {{ parts }}, 1), {{ fraction("regexp_extract(" ~ value ~ ", " ~ parts ~ ", 2)") }}, regexp_extract({{ value }}, {{ parts }}, 3)), null)
{%- endmacro -%}

{#- The ways in which databases write a boolean. -#}
{%- macro read_boolean(value, zone) -%}
case when lower({{ value }}) in ('true', 't', '1') then 'true' when lower({{ value }}) in ('false', 'f', '0') then 'false' end
{%- endmacro -%}

{#- A decimal; an exponent is written out. -#}
{%- macro read_decimal(value, zone) -%}
if({{ value }} rlike '^[+-]?(?:[0-9]++(?:\\.[0-9]*+)?|\\.[0-9]++)\\z', {{ value }}, {{ written_out(value) }})
{%- endmacro -%}

{#- A whole number; an exponent is written out, and true is 1. -#}
{%- macro read_number(value, zone) -%}
if({{ value }} rlike '^[+-]?[0-9]++\\z', {{ value }}, case {{ value }} when 'true' then '1' when 'false' then '0' else {{ written_out(value) }} end)
{%- endmacro -%}

{#- An exponent of up to 10,000: sign, digits, and where the dot goes. -#}
{%- macro written_out(value) -%}
{%- set number = "'^([+-]?)([0-9]++)(?:\\\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})\\\\z'" -%}
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

{#- By how many characters an exponent of up to 10,000 makes a number longer. -#}
{%- macro zeros_written_out(value) -%}
{%- set exponent = "abs(try_cast(regexp_extract(" ~ value ~ ", '[eE]([+-]?[0-9]{1,5})\\\\z', 1) as int))" -%}
if((contains({{ value }}, 'e') or contains({{ value }}, 'E')) and {{ exponent }} <= 10000, {{ exponent }}, 0)
{%- endmacro -%}

{#- The labels of enum('a','b''s') or set(...). -#}
{%- macro labels(type) -%}
transform(regexp_extract_all(substr({{ type }}, instr({{ type }}, '(')), "'((?:[^']|'')*+)'", 1), l -> replace(l, "''", "'"))
{%- endmacro -%}

{#- An enum or a set sent as labels; where the type lists none, any text may be one. -#}
{%- macro read_label(value, zone) -%}
get(transform(array({{ labels('reader.value') }}), labels -> if(size(labels) = 0 or array_contains(labels, {{ value }}), {{ value }}, null)), 0)
{%- endmacro -%}
{%- macro read_labels(value, zone) -%}
get(transform(array({{ labels('reader.value') }}), labels ->
      if(size(labels) = 0 or {{ value }} = '' or forall(split({{ value }}, ','), l -> array_contains(labels, l)), {{ value }}, null)), 0)
{%- endmacro -%}

{#- An enum sent as the ordinal of its label, from 1; 0 is the empty text, which a database may store for a wrong label. -#}
{%- macro read_ordinal(value, zone) -%}
get(transform(array({{ labels('reader.value') }}), labels -> case
      when {{ value }} = '' or {{ value }} = '0' and size(labels) > 0 then ''
      when {{ value }} rlike '^[0-9]{1,9}\\z' and try_cast({{ value }} as int) between 1 and size(labels) then get(labels, try_cast({{ value }} as int) - 1)
      when array_contains(labels, {{ value }}) then {{ value }} end), 0)
{%- endmacro -%}

{#- A set sent as an unsigned mask of 64 bits; the lowest bit is the first label. -#}
{%- macro read_mask(value, zone) -%}
{%- set mask -%}
cast(try_cast({{ value }} as decimal(20,0)) - if(try_cast({{ value }} as decimal(20,0)) > 9223372036854775807, 18446744073709551616, 0) as bigint)
{%- endset -%}
get(transform(array({{ labels('reader.value') }}), labels -> case
      when {{ value }} = '' or {{ value }} = '0' and size(labels) > 0 then ''
      when size(labels) > 0 and {{ value }} rlike '^[0-9]{1,20}\\z' and try_cast({{ value }} as decimal(20,0)) <= 18446744073709551615 then
        if(size(labels) < 64 and shiftrightunsigned({{ mask }}, size(labels)) <> 0, null,
          array_join(filter(labels, (l, bit) -> bit < 64 and getbit({{ mask }}, bit) = 1), ','))
      when {{ value }} rlike '[^0-9]' and forall(split({{ value }}, ','), l -> array_contains(labels, l)) then {{ value }} end), 0)
{%- endmacro -%}

{%- macro is_datetime() -%} '^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]++)?\\z' {%- endmacro -%}
{#- A time of day, or one on the days 0 to 28 of a month: every month has these. `seconds` may be missing with `?`. -#}
{%- macro is_clock_of_any_month(seconds) -%}
'^(?:[0-9]{4}-(?!1[3-9])[01][0-9]-(?:[01][0-9]|2[0-8]) (?:[01][0-9]|2[0-3])|-?[0-9]++):[0-5][0-9](?::[0-5][0-9](?:\\.[0-9]++)?){{ seconds }}\\z'
{%- endmacro -%}
{%- macro is_wall_clock() -%} '^(?:[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}|-?[0-9]++):[0-9]{2}:[0-9]{2}(?:\\.[0-9]++)?\\z' {%- endmacro -%}


{#- Wall clocks that came twice before a zone's clocks were set back, for which `text` is the first of two instants. Each macro is for the reader of
    the same name. -#}
{%- macro came_twice_instant(value, text, zone) -%} {{ value }} rlike {{ is_datetime() }} and {{ came_twice(text, "'" ~ zone.name ~ "'") }} {%- endmacro -%}
{%- macro came_twice_iso_zoned(value, text, zone) -%} {{ came_twice_zoned(value, text, zone) }} {%- endmacro -%}
{%- macro came_twice_zoned(value, text, zone) -%}
{{ text }} <> {{ value }} and {{ text }} rlike '^[0-9-]{10}T[0-9:.]+Z\\[[^\\]]+\\]\\z' and {{ came_twice(text, "rtrim(']', substring_index(" ~ text ~ ", '[', -1))") }}
{%- if zone and zone.may_skip %} or {{ value }} rlike '^[0-9-]{10}[ T][0-9:.]+\\z' and {{ came_twice(text, "'" ~ zone.name ~ "'") }}{% endif %}
{%- endmacro -%}

{#- The second instant is the one by the offset of the next day, if the zone's clocks showed the same then. -#}
{%- macro came_twice(text, zone) -%}
exists(array(try_cast(left({{ text }}, 19) as timestamp)), first -> exists(
      array(from_utc_timestamp(first, {{ zone }}) - (from_utc_timestamp(first + interval '1' day, {{ zone }}) - first - interval '1' day)),
      second -> second > first and from_utc_timestamp(second, {{ zone }}) = from_utc_timestamp(first, {{ zone }})))
{%- endmacro -%}
