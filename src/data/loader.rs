//! Modules, assemblies, loader allocators and their heaps.

use super::{Inline, Word, data};
use crate::base::Addr;

data! {
    /// `AppDomain` (appdomain.hpp).
    AppDomain {
        /// .NET 11: an `ArrayListBase` of assemblies.
        AssemblyList: Inline,
        /// Up to .NET 10: an `ArrayListBase` of `DomainAssembly`.
        DomainAssemblyList: Inline,
        /// .NET 8: an `SHash` of `MethodDescVersioningState`, by method.
        MethodDescVersioningStates: Inline,
    }

    /// `DomainAssembly` (domainassembly.h).
    DomainAssembly {
        Assembly: Addr,
    }

    /// `Assembly` (assembly.hpp).
    Assembly {
        Module: Addr,
    }

    /// `Module` (ceeload.h).
    Module {
        Assembly: Addr,
        PEAssembly: Addr,
        /// The image.
        Base: Addr,
        /// UTF-16.
        Path: Addr,
        FileName: Addr,
        /// UTF-8.
        SimpleName: Addr,
        LoaderAllocator: Addr,
        Flags: u32,
        /// `ModuleLookupMap`s.
        TypeDefToMethodTableMap: Inline,
        TypeRefToMethodTableMap: Inline,
        FieldDefToDescMap: Inline,
        MethodDefToDescMap: Inline,
        MemberRefToDescMap: Inline,
        /// .NET 9 and later: `DynamicMetadata`, the saved metadata of a module without an image. Null for others.
        DynamicMetadata: Addr,
        /// .NET 8, of `ReflectionModule`: `ReflectionDynamicMetadata`.
        ReflectionDynamicMetadata: Addr,
        /// The generic instances: `EETypeHashTable`.
        AvailableTypeParams: Addr,
        /// .NET 8: its statics.
        DomainLocalModule: Addr,
        ReadyToRunInfo: Addr,
    }

    /// `PEAssembly` (peassembly.h).
    PEAssembly {
        /// The load context.
        AssemblyBinder: Addr,
        PEImage: Addr,
    }

    /// `PEImage` (peimage.h).
    PEImage {
        /// `PEImageLayout`s.
        LoadedImageLayout: Addr,
        FlatImageLayout: Addr,
    }

    /// `PEImageLayout` (peimagelayout.h).
    PEImageLayout {
        Base: Addr,
        Size: u32,
    }

    /// The path in a [`PEImage`], in UTF-16.
    PEImagePath {
        ByteCount: u32,
        Buffer: Addr,
    }

    /// `DynamicMetadata` (ceeload.h).
    DynamicMetadata {
        Size: u32,
        Data: Inline,
    }

    /// .NET 8: `SBuffer` with the metadata of a `ReflectionModule` (ceeload.h).
    ReflectionDynamicMetadata {
        Size: u32,
        Buffer: Addr,
    }

    /// `ArrayListBase` (arraylist.h).
    ArrayListBase {
        Count: u32,
        FirstBlock: Inline,
    }

    /// `ArrayListBlock` (arraylist.h).
    ArrayListBlock {
        Next: Addr,
        Size: u32,
        ArrayStart: Inline,
    }

    /// `LookupMapBase` (ceeload.h): values by row of a metadata table.
    ModuleLookupMap {
        Next: Addr,
        TableData: Addr,
        Count: u32,
        /// A mask of flags, the same in every entry. Only the first map of a chain has it.
        SupportedFlagsMask: Word,
    }

    /// `EETypeHashTable` (typehash.h, dacenumerablehash.h).
    EETypeHashTable {
        Buckets: Addr,
        Count: u32,
        /// Of an entry: a type, with a flag in bit 0.
        VolatileEntryValue: Word,
        VolatileEntryNextEntry: Addr,
    }

    /// `LoaderAllocator` (loaderallocator.hpp).
    LoaderAllocator {
        /// A handle to the managed LoaderAllocator of a collectible assembly.
        ObjectHandle: Addr,
        CallCountingManager: Addr,
        /// `LoaderHeap`s.
        HighFrequencyHeap: Addr,
        LowFrequencyHeap: Addr,
        StaticsHeap: Addr,
        StubHeap: Addr,
        ExecutableHeap: Addr,
        FixupPrecodeHeap: Addr,
        NewStubPrecodeHeap: Addr,
        DynamicHelpersStubHeap: Addr,
        VirtualCallStubManager: Addr,
    }

    /// `VirtualCallStubManager` (virtualcallstub.h).
    VirtualCallStubManager {
        /// `LoaderHeap`s.
        IndcellHeap: Addr,
        CacheEntryHeap: Addr,
    }

    /// `LoaderHeap` (loaderheap.h).
    LoaderHeap {
        FirstBlock: Addr,
    }

    /// `LoaderHeapBlock` (loaderheap.h).
    LoaderHeapBlock {
        Next: Addr,
        VirtualAddress: Addr,
        VirtualSize: Word,
    }
}
