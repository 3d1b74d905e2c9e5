'use strict';
// Publisher's full result as text with a hole: head + data + tail is the result JSON.

// `stable` is the compiler's stable result without data. Key order is its own, `data` after
// `schema`.
function splitResult(stable) {
    const {schema, data: _none, ...rest} = stable;
    return {
        head_json: `{"schema":${JSON.stringify(schema)},"data":`,
        tail_json: ',' + JSON.stringify(rest).slice(1),
        schema_json: JSON.stringify(schema.fields),
    };
}

module.exports = {splitResult};
