'use strict';
// The package of the tests: files and the catalog that answers its needs.
const orders = {
    id: 'integer',
    region: 'text',
    status: 'text',
    amount: 'numeric',
    qty: 'bigint',
    ordered_at: 'timestamp without time zone',
    customer_id: 'integer',
    tags: 'text[]',
};

// Keys are table paths, or text that a SQL block contains.
const catalog = {
    'shop.orders': orders,
    'shop.customers': {id: 'integer', region: 'text'},
    'as top_n': {top_n: 'integer'},
    from_parent: {region: 'text', revenue: 'numeric'},
    from_given: {region: 'text', n: 'bigint'},
};

const base = `##! experimental { persistence givens parameters }
## materialization.freshness.window="1h" queryMetadata.owner="bi"
given: TENANT :: string is 'a'
given: REQUIRED :: string
source: orders is pg.table('shop.orders') extend {
  measure: n is count(), revenue is amount.sum()
  view: by_status is { group_by: status aggregate: n }
}
#@ persist name="mart.fact" freshness { window="24h" fallback=live } colour=red
#@ queryMetadata.team="x"
source: fact is orders -> {
  group_by: region, ordered_month is ordered_at.month, tags
  aggregate: revenue, n
} extend {
  measure: total is revenue.sum()
  view: by_region is {
    group_by: region
    aggregate: total
    nest: by_month is { group_by: ordered_month }
  }
}
source: fact_ext is fact extend { dimension: loud is upper(region) }
#@ -persist
source: fact_live is fact extend { dimension: quiet is lower(region) }
#@ persist name="mart.per_region"
source: per_region is fact -> { group_by: region aggregate: total } extend {
  join_one: fact_ext on region = fact_ext.region
}
#@ persist name="mart.top"
source: top is pg.sql("select 1 as top_n")
#@ persist name="mart.block"
source: block is pg.sql("""SELECT region, revenue FROM %{ fact } from_parent""")
query: regions is fact -> by_region
run: orders -> by_status
`;

const given = `##! experimental { persistence givens }
given: TENANT :: string is 'a'
given: REQUIRED :: string
source: orders is pg.table('shop.orders') extend { measure: n is count() }
#@ persist name="mart.in_query"
source: in_query is orders -> { where: region = $TENANT group_by: region aggregate: n }
#@ persist name="mart.required"
source: required is orders -> { where: region = $REQUIRED group_by: region aggregate: n }
#@ persist name="mart.in_base"
source: in_base is orders extend { where: status = $TENANT } -> { group_by: region aggregate: n }
#@ persist name="mart.in_extend"
source: in_extend is orders -> { group_by: region aggregate: n } extend { where: region = $TENANT }
#@ persist name="mart.in_segment"
source: in_segment is pg.sql("""SELECT region, n FROM %{ in_query } from_given""")
#@ persist name="mart.over_segment"
source: over_segment is in_segment -> { group_by: region }
#@ persist name="mart.literal"
source: literal is orders -> { where: region = 'a' group_by: region aggregate: n }
#@ persist name="mart.innocent"
source: innocent is orders -> { group_by: status aggregate: n }
`;

const files = {
    'base.malloy': base,
    'given.malloy': given,
    'sub/main.malloy': `import "../base.malloy"
source: joined is orders extend { join_one: per_region on region = per_region.region }
#@ persist name="mart.joined"
source: deep is joined -> { group_by: per_region.region aggregate: n }
`,
    'flagless.malloy': `#@ persist name="mart.quiet"
source: quiet is pg.table('shop.orders') -> { group_by: region }
`,
    'reaches.malloy': `##! experimental.persistence
import "flagless.malloy"
`,
    'story.malloynb': `>>>markdown
# A story
>>>malloy
import "base.malloy"
>>>malloy
run: fact -> by_region
`,
};

module.exports = {files, catalog, orders};
