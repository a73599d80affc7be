#!/usr/bin/env bash
# Builds infra/Dockerfile, looks at what came out, and lets its worker do the main
# job against the embedded engines. It needs root, Go and buildah, which it installs
# on Debian where it is missing.
#
# No registry is asked: the base image of the first stage is a stand-in of that name,
# empty, with this machine's /usr (and so its shell, Go and certificates) mounted
# while it is built from. The Dockerfile is run as it is. With OUTBOX_IMAGE_PULL=1
# the real base image is pulled instead.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" = 0 ] || { echo "infra/check-image.sh needs root"; exit 1; }
if ! command -v buildah >/dev/null; then
	apt-get update >/dev/null
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends buildah >/dev/null
fi

work=$(mktemp -d)
trap 'buildah rm --all >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
# Images and containers of its own, gone afterwards. vfs works without overlay mounts.
cat >"$work/storage.conf" <<END
[storage]
driver = "vfs"
graphroot = "$work/images"
runroot = "$work/run"
END
export CONTAINERS_STORAGE_CONF="$work/storage.conf"

base=$(sed -n 's/^FROM \(.*\/golang:[^ ]*\) AS build$/\1/p' infra/Dockerfile)
[[ ${base##*/} == golang:$(go env GOVERSION | sed 's/^go//')-* ]] || {
	echo "the base image is $base, and this machine has $(go env GOVERSION): what they build would differ"
	exit 1
}
# chroot: no namespaces and no cgroups, so that it works inside a container too.
build=(buildah bud --quiet --isolation chroot --format docker)
if [ "${OUTBOX_IMAGE_PULL:-}" != 1 ]; then
	goroot=$(go env GOROOT) modules=$(go env GOMODCACHE) cache=$(go env GOCACHE)
	mkdir -p "$work/base"/{etc,tmp,usr,root,"$goroot","$modules","$cache"}
	for folder in bin lib lib64; do ln -s "usr/$folder" "$work/base/$folder"; done
	container=$(buildah from scratch)
	buildah copy --quiet "$container" "$work/base" / >/dev/null
	buildah config --env PATH="$goroot/bin:/usr/bin:/bin" --env HOME=/root --env GOFLAGS= \
		--env GOPROXY="$(go env GOPROXY)" --env GOSUMDB="$(go env GOSUMDB)" --env GOMODCACHE="$modules" \
		--env GOCACHE="$cache" "$container"
	buildah commit --quiet "$container" "$base" >/dev/null
	buildah rm "$container" >/dev/null
	build+=(--pull-never --volume /usr:/usr:ro --volume /etc/ssl:/etc/ssl:ro
		--volume "$goroot:$goroot:ro" --volume "$modules:$modules")
	# In CI everything is compiled anew, so that the comparison with a second build
	# means most; elsewhere a minute and a half is saved.
	if [ "${CI:-}" != true ]; then
		build+=(--volume "$cache:$cache")
	fi
fi

version=v0.0.0-check commit=$(git rev-parse HEAD)
image=$("${build[@]}" --build-arg VERSION="$version" --build-arg COMMIT="$commit" -f infra/Dockerfile .)
container=$(buildah from --pull-never "$image")
root=$(buildah mount "$container")
OUTBOX_TEST_IMAGE_VERSION=$version OUTBOX_TEST_IMAGE_COMMIT=$commit OUTBOX_TEST_IMAGE_ROOT=$root OUTBOX_TEST_CONTAINER=$container \
	go test -count=1 -run TestTheImage -v ./infra
