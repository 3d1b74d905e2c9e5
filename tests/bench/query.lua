-- wrk: asks the query of KILN_BENCH_BODY over and over, and says how many answers were not 200.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = os.getenv("KILN_BENCH_BODY")

function done(summary, latency, requests)
    io.write(string.format("RESULT %d %d %.1f %.1f %d\n", summary.requests, summary.duration,
        latency:percentile(50), latency:percentile(99),
        summary.errors.status + summary.errors.read + summary.errors.timeout + summary.errors.connect))
end
