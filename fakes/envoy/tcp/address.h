// The house's addresses under the names that this folder uses.
#pragma once

#include "core/base/ip.h"

namespace wavetank::envoysim {

using wavetank::IpAddress;
using wavetank::IpPrefix;
using wavetank::SocketAddress;

}  // namespace wavetank::envoysim
