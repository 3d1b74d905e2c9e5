'use strict';
// A package that uses most of the language, for warming a snapshot: the parser learns its decisions
// by meeting them, and whoever meets one first pays for it.
const BASE = `##! experimental { persistence givens }
import { places, place_by_id is places } from "places.malloy"

given: TENANT :: string is 'a'

#(doc) The facts
source: sales is warm.table('shop.sales') extend {
  primary_key: id
  rename: at is sold_at
  except: secret
  join_one: places with place
  join_one: origin is place_by_id on origin.id = place and origin.state is not null
  join_many: others is warm.sql("""SELECT id, kind FROM shop.sales""") on others.kind = kind
  join_cross: calendar is warm.table('shop.days')
  where: amount > 0 and kind != 'void' | 'none'

  dimension:
    at_month is at.month
    \`date\` is at::date
    weekday is day_of_week(at)
    since is days(at to now)
    label is concat(upper(kind), '-', places.state ?? '?')
    is_large is amount > 100 or not (amount <= 10 and kind ~ 'a%')
    size is pick 'small' when amount < 10
            pick 'middle' when amount >= 10 & < 100
            else 'large'
    tier is amount ? pick 1 when < 10 pick 2 when 10 to 100 else 3
    in_2024 is at ? @2024
    in_span is at ? @2024-01 to @2024-06-15 10:00
    recent is at > now - 7 days
    share is round(amount / nullif(qty, 0), 2)
    in_year is year(at)
    as_text is amount::string
    whole is floor(amount)::number
    mine is kind = $TENANT

  measure:
    sale_count is count()
    kinds is count(kind)
    # percent
    large_share is count() { where: is_large } / nullif(count(), 0)
    revenue is amount.sum(), average is avg(amount), most is max(amount), least is amount.min()
    place_count is places.id.count()
    revenue_2024 is revenue { where: at ? @2024, kind = 'a' | 'b' }
    of_all is 100 * revenue / all(revenue)

  # line_chart
  view: by_month is {
    group_by: at_month
    aggregate: sale_count, revenue
    order_by: at_month desc
    limit: 12
  }
  view: top is {
    where: is_large
    group_by: kind, place_name is places.name
    aggregate:
      revenue
      share_of is revenue / sale_count
    calculate: place_rank is rank(), before is lag(revenue), running is sum_cumulative(revenue)
    nest: by_month + { where: amount > 1; limit: 3 }
    nest: by_size is {
      group_by: size
      aggregate: n is count()
      having: n > 1
      order_by: 2 desc, size
    }
    order_by: revenue desc, kind
    top: 10
  }
  view: rows is { select: kind, amount, at, places.*; limit: 5 }
  view: indexed is { index: kind, places.state by sale_count; sample: 100 }
}

#@ persist name="mart.sales_month" tags="a"
source: sales_month is sales -> {
  group_by: at_month, kind, state is places.state
  aggregate: sale_count, revenue, total_qty is qty.sum()
} extend {
  join_one: places on state = places.state
  measure: sold is sale_count.sum(), money is revenue.sum()
  measure: mean is revenue.sum() / sale_count.sum()
  view: monthly is { group_by: at_month aggregate: sold, money order_by: at_month }
  view: story is {
    group_by: kind
    aggregate: sold, money
    nest: best is { group_by: state aggregate: money order_by: money desc limit: 3 }
    limit: 5
  }
}

#@ persist name="mart.kinds"
source: kinds is sales_month -> { group_by: kind aggregate: sold, money } extend {
  measure: everything is sold.sum()
}

source: named is kinds extend { dimension: long_name is concat(kind, '-', kind) }

#@ -persist
source: live is sales_month extend { measure: live_sold is sale_count.sum() }

#@ persist name="mart.from_sql"
source: from_sql is warm.sql("""
  SELECT kind, count(*) AS n FROM %{ sales_month -> { select: * } } AS s GROUP BY 1
""")

query: monthly is sales_month -> monthly
# table
query: piped is sales -> by_month -> { aggregate: n is count(), money is revenue.sum() }
query: refined is monthly + { limit: 3 }
`;

const PLACES = `// What is joined
source: places is warm.table('shop.places') extend {
  primary_key: id
  dimension: place is concat(name, ', ', state)
  dimension: far is latitude > 60.5 and longitude is not null
  measure: place_count is count()
}
`;

const COLUMNS = {
    'shop.sales': {
        id: 'bigint',
        place: 'bigint',
        kind: 'text',
        amount: 'numeric',
        qty: 'integer',
        sold_at: 'timestamp without time zone',
        secret: 'text',
    },
    'shop.days': {day: 'date', is_holiday: 'boolean'},
    'shop.places': {
        id: 'bigint',
        name: 'text',
        state: 'text',
        latitude: 'double precision',
        longitude: 'double precision',
    },
    'SELECT id': {id: 'bigint', kind: 'text'},
    'SELECT kind': {kind: 'text', n: 'bigint'},
};

const QUERIES = [
    {query_name: 'monthly'},
    {query_name: 'piped'},
    {source_name: 'sales', query_name: 'top'},
    {source_name: 'sales_month', query_name: 'story'},
    {text: 'run: kinds -> { aggregate: everything }'},
    {text: "run: live -> { where: kind = 'a' group_by: state aggregate: live_sold limit: 10 }"},
    {text: 'run: sales -> { select: * limit: 3 }'},
    {
        text: 'run: sales_month -> monthly + { where: at_month > @2024-02 }',
        givens_json: '{"TENANT":"b"}',
    },
    {
        text: `source: more is sales extend { dimension: twice is amount * 2 }
               run: more -> { group_by: label aggregate: revenue, d is count(kind) order_by: d }`,
    },
];

module.exports = {
    FILES: {'sales.malloy': BASE, 'places.malloy': PLACES},
    MODEL: 'sales.malloy',
    COLUMNS,
    QUERIES,
};
