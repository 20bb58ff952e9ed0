// Connections of HTTP/2, as client-go opens one for all that it asks and watches (RFC 9113, by libnghttp2). Chosen by
// ALPN within TLS alone; upgrades to other protocols are HTTP/1.1's.
#pragma once

#include <openssl/types.h>

#include <memory>

#include "fakes/kube/http/transport/request_head.h"
#include "fakes/kube/http/transport/server_impl.h"
#include "fakes/kube/http/transport/stream.h"

namespace wavetank::fakekube::http {

// After the handshake. Null: the connection is in the clear.
bool ChoseHttp2(SSL* ssl);

// Serves the connection until it ends. On the server's thread.
void ServeHttp2(std::shared_ptr<Server::Impl> server, std::shared_ptr<Stream> stream, const Server::Handler& handler,
                ClientName client);

}  // namespace wavetank::fakekube::http
