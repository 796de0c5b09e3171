-- mirror_without_key: shop.log of source dataworks, then shop.log of source canal, each row as it is now
select * from (
with
-- The changes of the table, with the names that its columns have here.
sent as (
  select rank, source, batch, op, seq, numbered_in, sent_at, log, event_time, produced_at, valid_from, after_image,
    array_except(cast(array('level', 'text') as array<string>), map_keys(named_as(types, names))) as unlisted,
    transform(changed, c -> coalesce(names[lower(c)], c)) as changed,
    named_as(key, names) as key, named_as(old_key, names) as old_key, named_as(before, names) as before, named_as(after, names) as after
  from (
    select 0 as rank, *, if(size(seq.position) = 0, null, '') as numbered_in, coalesce(produced_at, origin.timestamp) as sent_at,
      coalesce(concat(origin.topic, '/', origin.partition), origin.file) as log, coalesce(event_time, produced_at, origin.timestamp) as
      valid_from,
      map('level', 'level', 'text', 'text') as names
    from (select * from (
      select `kind`, 'dataworks' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`,
        `key_text`, `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`,
        `pair_id`, `meta`, `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from
        `dataworks_to_changelog`
    )
    where kind = 'row'
      and pair_id is null
    union all
    select `kind`, `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`, `before`,
      `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`, `origin`,
      `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from (
      select
        own.*
          except (before, before_image, after_image, old_key, changed, batch),
        if(other is null, own.before, other.before) as before,
        if(other is null, own.before_image, case
      when other.before is null then 'none'
      when coalesce(map_keys(other.before) = map_keys(own.types), own.types is null)
        and coalesce(map_keys(other.before) = map_keys(own.after), own.after is null) then 'full'
      when not
        (coalesce(size(array_except(map_keys(own.after), map_keys(other.before))) > 0, false)
        or coalesce(size(array_except(map_keys(own.types), map_keys(other.before))) > 0, false)) then 'full'
      when size(other.before) > 0 and size(array_except(map_keys(other.before), map_keys(own.key))) = 0 then 'key'
      else 'partial' end) as before_image,
        if(other is null, own.after_image, case
      when own.after is null then 'none'
      when coalesce(map_keys(own.after) = map_keys(own.types), own.types is null)
        and coalesce(map_keys(own.after) = map_keys(other.before), other.before is null) then 'full'
      when not
        (coalesce(size(array_except(map_keys(other.before), map_keys(own.after))) > 0, false)
        or coalesce(size(array_except(map_keys(own.types), map_keys(own.after))) > 0, false)) then 'full'
      when size(own.after) > 0 and size(array_except(map_keys(own.after), map_keys(own.key))) = 0 then 'key'
      else 'partial' end) as after_image,
        if(other is null, own.old_key, if(not map_values(other.key) <=> map_values(own.key), other.key, null)) as old_key,
        if(other is null, own.changed, case
      when map_keys(other.before) = map_keys(own.after)
        then sort_array(filter(map_keys(own.after), (c, i) -> not get(map_values(other.before), i) <=> get(map_values(own.after), i)))
      when
        (coalesce(size(array_except(map_keys(own.after), map_keys(other.before))) > 0, false)
        or coalesce(size(array_except(map_keys(own.types), map_keys(other.before))) > 0, false)) =
        (coalesce(size(array_except(map_keys(other.before), map_keys(own.after))) > 0, false)
        or coalesce(size(array_except(map_keys(own.types), map_keys(own.after))) > 0, false))
        then
          sort_array(array_intersect(array_intersect(map_keys(other.before), map_keys(own.after)),
          map_keys(map_filter(map_zip_with(other.before, own.after, (c, b, a) -> not b <=> a), (c, differs) -> differs)))) end) as changed,
        if(other is null, own.batch, greatest(own.batch, other.batch)) as batch
      from (
        select
          coalesce(after_half, before_half) as own,
          if(after_half is null, null, before_half) as other
        from (
          select
            min_by(half, half.seq) filter (where half.after_image = 'none') as before_half,
            min_by(half, half.seq) filter (where half.after_image <> 'none') as after_half
          from (
            select struct(`kind`, `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
              `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`,
              `meta`, `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on`) as half from (
              select `kind`, 'dataworks' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`,
                `key_text`, `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`,
                `seq`, `pair_id`, `meta`, `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from
                `dataworks_to_changelog`
            )
            where kind = 'row' and pair_id is not null
          )
          group by half.source, half.tenant, half.db_name, half.schema_name, half.table_name, half.pair_id, half.seq.row
        )
      )
    ))
    where kind = 'row' and table_name = 'log' and coalesce(schema_name, db_name) = 'shop'
      and not (op = 'update' and after_image = 'none')
    union all
    select 1 as rank, *, if(size(seq.position) = 0, null, '') as numbered_in, coalesce(produced_at, origin.timestamp) as sent_at,
      coalesce(concat(origin.topic, '/', origin.partition), origin.file) as log, coalesce(event_time, produced_at, origin.timestamp) as
      valid_from,
      map('level', 'level', 'text', 'text') as names
    from `canal_to_changelog`
    where kind = 'row' and table_name = 'log' and coalesce(schema_name, db_name) = 'shop'
      and not (op = 'update' and after_image = 'none')
  )
),

-- The row that each change is of. A change of the key is of two rows.
keyed as (
  select *,
    struct(to_json(map_from_entries(array_sort(map_entries(map_filter(if(op = 'delete', before, after), (c, v) -> c in
    ('level', 'text')))))) as row) as key_after,
    struct(to_json(map_from_entries(array_sort(map_entries(map_filter(before, (c, v) -> c in ('level', 'text')))))) as row) as key_before,
    op = 'update' and coalesce(key_before <> key_after, false) as moved
  from sent
),

-- What each change does to a row: it removes it, or tells all of its columns, or some.
told_changes as (
  select
    source, op, event_time as changed_at, valid_from, removes,
    if(removes, key_before, key_after) as row_key,
    removes or op <> 'update' or after_image = 'full' or moved as is_whole,
    -- Also of a row that is told as new without all its columns: what was not logged when its key changed. The empty name marks it.
    if(after_image in ('partial', 'key') and not removes and (op <> 'update' or moved),
      array_union(array_append(coalesce(unlisted, array()), ''),
        array_except(cast(array('level', 'text') as array<string>),
        map_keys(if(moved, map_concat(coalesce(before, map()), after), after)))),
      unlisted) as unlisted,
    case
      when removes then map()
      when moved then map_concat(coalesce(before, map()), after)
      when after_image = 'patch' then told_columns(after, changed)
      else coalesce(after, map()) end as told,
    rank, seq.generation, seq.phase, load_text(rank, seq.generation, seq.phase) as load, numbered_in, seq.position,
    sent_at, produced_at, log, seq.arrival, seq.row as row_index
  from keyed
  lateral view explode(case when moved then array(true, false) when op = 'delete' then array(true) else array(false) end) as removes
  where if(removes, key_before, key_after).`row` is not null
),

-- As they came: within a log in its order, between logs by when they were sent.
came as (
  select *, arrival_text(told_at, arrival, row_index, log) as arrived, op = 'snapshot' and numbered_in is null
    and produced_at is not null as is_load_of_time
  from (
    select *, max(sent_at) over (partition by row_key, load, log order by arrival, row_index rows between unbounded preceding
      and current row) as told_at
    from (select * from told_changes distribute by row_key)
  )
),

-- Without those that are told again: numbers show it, or a time that goes back, or of a loaded row when it was sent.
told_once as (
  select * from (
    select *,
      row_number() over (
        partition by row_key, load,
          xxhash64(numbered_in, position, changed_at, op, removes, map_keys(told), array_join(map_values(told), '\u0001', '\u0002'),
          row_index, if(is_load_of_time, produced_at, null))
        order by arrived) as times_told,
      changed_at < max(changed_at) over (partition by row_key, load order by arrived rows between unbounded preceding and 1 preceding) as
        goes_back
    from came
  )
  where times_told = 1 or not coalesce(numbered_in is not null or is_load_of_time or goes_back, false)
),
-- Numbers are compared only where all changes between two are numbered in the same log.
stretched as (
  select *, cast(sum(if(is_cut, 1, 0)) over (partition by row_key, load order by arrived rows between unbounded preceding and current row)
    as int) as stretch
  from (
    select *, lag(1) over so_far is not null and not numbered_in <=> lag(numbered_in) over so_far as is_cut
    from told_once
    window so_far as (partition by row_key, load order by arrived)
  )
),

ordered as (
  select *, place_text(load, stretch, numbered_in, position, op = 'snapshot', arrived) as place,
    collect_list(if(is_cut, struct(told_at, arrival, log), null)) over (partition by row_key, load) as begins
  from stretched
),

-- What statements did to the table after each change, in their order.
effects as (
  select array_sort(
    collect_list(struct(nth, rank, called, earlier, generation, position, numbered_in, sent_at, log, arrival, at, happened_at, empties,
      told, renamed)),
    (a, b) -> a.nth - b.nth) as effects
  from `mirror_without_key__statements`
),
changes as (
  select * except (emptied, later), emptied.at as emptied_at,
    -- Those that it lived to see.
    filter(later, n -> coalesce(n < emptied.nth, true)) as later, emptied.nth as emptied_nth
  from (
    select *, get(filter(effects, e -> e.empties and array_contains(later, e.nth)), 0) as emptied
    from (
      select *, effects_after(effects, rank, 0, generation, phase, numbered_in, position, stretch, begins, struct(told_at, arrival, log),
        changed_at) as later
      from ordered cross join effects
    )
  )
),

-- What is known of each row that was ever there.
known as (
  select
    row_key,
    max_by(struct(place, source, changed_at, removes), place) as newest,
    min_by(place, arrived) as first_arrived,
    min(if(numbered_in is null, changed_at, null)) as goes_back_to,
    max(place) filter (where is_whole) as newest_whole,
    min(place) filter (where not is_whole) as first_part,
    coalesce(
      max(place) filter (where not is_whole) > max(place) filter (where is_whole),
      max(place) filter (where not is_whole) is not null) as in_parts,
    max_by(unlisted, place) filter (where is_whole) as unlisted,
    not bool_or(is_whole) as only_parts,
    aggregate(
      array_sort(
        filter(collect_list(struct(place, told, later)) filter (where not is_whole), p ->
          coalesce(p.place > max(place) filter (where is_whole), true)),
        (a, b) -> case when a.place < b.place then -1 when a.place > b.place then 1 else 0 end),
      coalesce(max_by(struct(told, later), place) filter (where is_whole),
        struct(cast(map() as map<string,string>) as told, cast(array() as array<int>) as later)),
      (known, p) ->
        struct(map_concat(aggregate(filter(any_value(effects), e -> array_contains(array_except(known.later, p.later), e.nth)
        and not e.empties), known.told, (image, e) -> map_concat(
        map_from_entries(transform(filter(map_entries(image), c -> not map_contains_key(e.told, c.key)), c ->
          struct(coalesce(e.renamed[c.key], c.key) as key, c.value as value))), e.told)), p.told) as told, p.later as later),
      known ->
        aggregate(filter(any_value(effects), e -> array_contains(known.later, e.nth) and not e.empties), known.told, (image, e) ->
        map_concat(
        map_from_entries(transform(filter(map_entries(image), c -> not map_contains_key(e.told, c.key)), c ->
          struct(coalesce(e.renamed[c.key], c.key) as key, c.value as value))), e.told))) as told
  from changes
  where emptied_nth is null
  group by row_key
),

-- The rows that are there, typed.
typed as (
  select newest, in_parts, told, unlisted, only_parts, struct(
    try_cast(told['level'] as int) as `level`, told['text'] as `text`) as row
  from known
  where not newest.removes
)

select
  row.`level`, row.`text`, newest.changed_at as _changed_at, newest.place as _seq, newest.source as _source, in_parts as _in_parts,
  untold_columns(if(only_parts, cast(array('level', 'text') as array<string>), unlisted), told) as _untold,
  unfit_columns(told, array(
    if(row.`level` is null, 'level', null))) as _unfit
from typed
)
where (
  level > 2
)
