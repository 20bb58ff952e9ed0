// What requests of HTTP/1.1 and HTTP/2 have in common: who sends them, and what their headers say.
#pragma once

#include <openssl/types.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fakes/kube/http/message/message.h"

namespace wavetank::fakekube::http {

struct ClientName {
  std::string user;
  std::vector<std::string> groups;
};

// Whom the client's certificate names, if its chain leads to an authority that counts and it is for clients. Null: the
// connection is in the clear.
ClientName VerifiedClient(SSL* ssl);

// The values under a name in small letters, as they came.
using HeadersByName = std::map<std::string, std::vector<std::string>, std::less<>>;

// A request without its body. `target` begins with a slash.
Request ReadHead(std::string method, std::string_view target, const HeadersByName& headers, const ClientName& client);

}  // namespace wavetank::fakekube::http
