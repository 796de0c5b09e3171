-- mirror_of_orders_history: shop.orders of source canal, each row as it was from one change to the next
with
-- The changes of the table, with the names that its columns have here.
sent as (
  select rank, source, batch, op, seq, numbered_in, sent_at, log, event_time, produced_at, valid_from, after_image,
    array_except(cast(array('status', 'amount', 'paid_at') as array<string>), map_keys(named_as(types, names))) as unlisted,
    transform(changed, c -> coalesce(names[lower(c)], c)) as changed,
    named_as(key, names) as key, named_as(old_key, names) as old_key, named_as(before, names) as before, named_as(after, names) as after
  from (
    select 0 as rank, *, if(size(seq.position) = 0, null, '') as numbered_in, coalesce(produced_at, origin.timestamp) as sent_at,
      coalesce(concat(origin.topic, '/', origin.partition), origin.file) as log, coalesce(event_time, produced_at, origin.timestamp) as
      valid_from,
      map('id', 'id', 'status', 'status', 'amount', 'amount', 'paid_at', 'paid_at', 'paid', 'paid_at') as names
    from `canal_to_changelog`
    where kind = 'row' and table_name = 'orders' and coalesce(schema_name, db_name) = 'shop'
      and not (op = 'update' and after_image = 'none')
  )
),

-- The row that each change is of. A change of the key is of two rows.
keyed as (
  select *, struct(try_cast(coalesce(key['id'], if(op = 'delete', before, after)['id'], before['id']) as bigint) as `id`) as key_after,
    struct(coalesce(try_cast(coalesce(old_key['id'], before['id']) as bigint), key_after.`id`) as `id`) as key_before,
    op = 'update' and key_before <> key_after as moved
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
        array_except(cast(array('status', 'amount', 'paid_at') as array<string>),
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
  where if(removes, key_before, key_after).`id` is not null
),

-- As they came: within a log in its order, between logs by when they were sent.
came as (
  select *, arrival_text(told_at, arrival, row_index, log) as arrived, op = 'snapshot' and numbered_in is null
    and produced_at is not null as is_load_of_time
  from (
    select *, max(sent_at) over (partition by row_key.`id`, load, log order by arrival, row_index rows between unbounded preceding
      and current row) as told_at
    from (select * from told_changes distribute by row_key.`id`)
  )
),

-- Without those that are told again: numbers show it, or a time that goes back, or of a loaded row when it was sent.
told_once as (
  select * from (
    select *,
      row_number() over (
        partition by row_key.`id`, load,
          xxhash64(numbered_in, position, changed_at, op, removes, map_keys(told), array_join(map_values(told), '\u0001', '\u0002'),
          if(is_load_of_time, produced_at, null))
        order by arrived) as times_told,
      changed_at < max(changed_at) over (partition by row_key.`id`, load order by arrived rows between unbounded preceding and 1 preceding)
        as goes_back
    from came
  )
  where times_told = 1 or not coalesce(numbered_in is not null or is_load_of_time or goes_back, false)
),
ordered as (
  select *, place_text(load, 0, numbered_in, position, op = 'snapshot', arrived) as place,
    0 as stretch, cast(array() as array<struct<told_at timestamp, arrival array<bigint>, log string>>) as begins
  from told_once
),

-- What statements did to the table after each change, in their order.
effects as (
  select array_sort(
    collect_list(struct(nth, rank, called, earlier, generation, position, numbered_in, sent_at, log, arrival, at, happened_at, empties,
      told, renamed)),
    (a, b) -> a.nth - b.nth) as effects
  from `mirror_of_orders__statements`
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

-- Each change tells single columns of a row, or begins it anew.
begun as (
  select *, count_if(is_whole) over (partition by row_key.`id`, emptied_nth order by place) as beginning
  from changes
),

-- The statements after each change and before the next one.
followed as (
  select *, array_except(later, coalesce(lead(later) over (partition by row_key.`id`, emptied_nth order by place), array())) as followed_by
    from begun
),

-- What is known of a row after each change, typed. A statement changes the version that there is, and begins none.
typed as (
  select *, struct(
    row_key.`id` as `id`, told['status'] as `status`,
    if(told['amount'] rlike '^[+-]?[0-9]*([.][0-9]{0,2}0*)?$', try_cast(told['amount'] as decimal(10,2)), null) as `amount`,
    as_timestamp(told['paid_at']) as `paid_at`) as row
  from (
    select * except (told),
      reduce(
        collect_list(struct(told, followed_by)) over (
          partition by row_key.`id`, emptied_nth, beginning order by place rows between unbounded preceding and current row),
        cast(map() as map<string,string>), (image, one) ->
          aggregate(filter(effects, e -> array_contains(one.followed_by, e.nth) and not e.empties), map_concat(image, one.told), (image, e)
          -> map_concat(
        map_from_entries(transform(filter(map_entries(image), c -> not map_contains_key(e.told, c.key)), c ->
          struct(coalesce(e.renamed[c.key], c.key) as key, c.value as value))), e.told))) as told
    from followed
  )
),

-- Changes that change nothing, such as those that are told twice, make no version.
compared as (
  select *, struct(removes, row, key_text(unfit) as unfit) as version
  from (select *, unfit_columns(told, array(
    if(row.`amount` is null, 'amount', null), if(row.`paid_at` is null, 'paid_at', null))) as unfit from typed)
),
versions as (
  select * except (valid_from),
    max(greatest(valid_from,
    array_max(transform(filter(effects, e -> e.empties and e.rank = rank and (emptied_nth is null or e.nth < emptied_nth)), e -> e.at))))
    over (partition by row_key.`id` order by place rows between unbounded preceding and current row) as valid_from
  from (
    select *, lag(version) over (partition by row_key.`id`, emptied_nth order by place) as version_before from compared
  )
  where not version <=> version_before
),

-- A version ends when the next one begins, and begins no earlier than the one before it.
ended as (
  select *,
    coalesce(
      min(valid_from) over (partition by row_key.`id`, emptied_nth order by place desc rows between unbounded preceding and 1 preceding),
      if(emptied_nth is null, null, greatest(emptied_at, valid_from))) as valid_to,
    row_number() over (partition by row_key.`id`, emptied_nth order by place desc) = 1 and emptied_nth is null as is_current
  from versions
)

select
  row.`id`, row.`status`, row.`amount`, row.`paid_at`, valid_from, valid_to, is_current, op, changed_at as _changed_at,
  place as _seq, source as _source, unfit as _unfit
from ended
where not removes
