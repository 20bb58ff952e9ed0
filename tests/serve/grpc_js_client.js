// A gRPC client in Node.js whose target is "xds:///...": each line on standard input is one call, answered by one line:
// what the backend said, or "error: ..." with gRPC's code. Ends with its input.
'use strict';
const grpc = require('@grpc/grpc-js');
require('@grpc/grpc-js-xds').register();

const [target, method] = process.argv.slice(2);
const bytes = (buffer) => buffer;
const client = new grpc.Client(target, grpc.credentials.createInsecure());

require('readline').createInterface({input: process.stdin})
    .on('line', () => {
      const options = {deadline: Date.now() + 5000};
      const metadata = new grpc.Metadata({waitForReady: true});
      client.makeUnaryRequest(method, bytes, bytes, Buffer.alloc(0), metadata, options, (error, answer) => {
        console.log(error ? `error: ${error.code} ${error.details}` : answer.toString());
      });
    })
    .on('close', () => process.exit(0));
