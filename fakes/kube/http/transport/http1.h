// A connection as it begins: in the clear or with a handshake of TLS, whose client may have chosen HTTP/2; HTTP/1.1
// from there on, one request after the other, or a watch, or another protocol (tunnel.h).
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "fakes/kube/http/transport/server_impl.h"

namespace wavetank::fakekube::http {

// Serves a connection until it ends. On the server's thread.
void ServeHttp1(std::shared_ptr<Server::Impl> server, boost::asio::ip::tcp::socket socket,
                const Server::Handler& handler);

}  // namespace wavetank::fakekube::http
